"""`ckpt list|export`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from rc1_lib.cli.endings import Ending, Failure, end
from rc1_lib.cli.options import Checkpoint
from rc1_lib.cli.session import Session, quieten_models, stages
from rc1_lib.cli.tables import table
from rc1_lib.runtime.libraries import check_llama_cpp

if TYPE_CHECKING:
    from rc1_lib.run import Run
    from rc1_lib.training.export.parity import GGUFParityReport, ParityReport

_DAMAGED = "restore its files from a copy, or move it away: training resumes from the newest intact one"
_PROMPTS, _PROMPTS_OF_LLAMA_CPP = 32, 200
_IDS_ONLY = "llama.cpp has no pre-tokenizer that cuts texts as this tokenizer does: give the file token ids, not texts"


def list_checkpoints(session: Session) -> int:
    """List the checkpoints below `checkpoints/`, and check every byte against the manifests."""
    rows = [row for folder in _folders(session.workspace.root) for row in _rows(session, folder)]
    cells = [
        (f"{row['path']}{' (latest)' if row['latest'] else ''}", row["step"], f"{row['bytes'] / 1e6:.1f}",
         (row["sha256"] or "")[:16], row["state"])
        for row in rows
    ]  # fmt: skip
    heads = ("checkpoint", "step", "MB", "SHA-256 of its manifest", "state")
    shown = table("checkpoints", heads, cells, ("step", "MB"))
    damaged = [f"{row['path']}: {row['damage']}" for row in rows if row["damage"]]
    session.show(*([shown] if rows else [str(session.workspace.path("checkpoints"))]), *damaged)
    return end(session, _state_of(rows), {"checkpoints": rows})


def _state_of(rows: list[dict[str, Any]]) -> Ending:
    """Return whether all checkpoints are intact."""
    if not rows:
        return Ending("done", "there are no checkpoints in this workspace")
    if damaged := [Failure(f"{row['path']}: {row['damage']}", _DAMAGED) for row in rows if row["damage"]]:
        return Ending("fail", f"{len(damaged)} of {len(rows)} checkpoints are damaged", damaged)
    return Ending("pass", f"{len(rows)} checkpoints, all whole")


def export(
    session: Session,
    checkpoint: Checkpoint,
    to: Annotated[
        Path | None,
        typer.Option(help="A new folder in the workspace. Default: models/export/ and the checkpoint's name."),
    ] = None,
    gguf: Annotated[
        Literal["f32", "f16", "q8_0"] | None,
        typer.Option(help="Also write a file for llama.cpp (extra `gguf`) with matrices of this type, next to --to."),
    ] = None,
    prompts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Held-out prompts on which what is written must match the policy. Default: 32; llama.cpp: 200."
        ),
    ] = None,
) -> int:
    """Export a policy for other programs: an adapter for peft, a merged model for transformers, and a manifest.

    Both are read back and compared with the engine's policy, by logits and greedy tokens; llama.cpp continues prompts
    greedily with its file. What differs is not kept, and the exit code is 1.
    """
    run = session.open(remembered=True)
    found_at = found_checkpoint(session, checkpoint)  # before the libraries are imported, which takes seconds
    from rc1_lib.preflight.carried_ticket import check_still_vouched
    from rc1_lib.training.checkpoint.atomic_folder import check_absent
    from rc1_lib.training.checkpoint.manifest import fingerprint

    check_still_vouched(run, found_at, fingerprint(found_at))
    target = session.new_folder("--to", to, f"models/export/{found_at.parent.name}-{found_at.name}")
    if gguf is not None:
        check_llama_cpp()
        check_absent(_beside(target, gguf))
    quieten_models(run)
    from rc1_lib.training.export.checkpoint_export import ExportMismatchError, export_checkpoint

    with stages():
        try:
            found, folder = export_checkpoint(run, found_at, target, prompts or _PROMPTS).found, str(target)
        except ExportMismatchError as fault:
            found, folder = fault.found, None
            session.show(str(fault))
    session.show(_likeness_table(found), *([f"exported: {folder}"] if folder else []))
    document: dict[str, Any] = {"folder": folder, "likeness": {name: one.body() for name, one in found.items()}}
    if folder is None:
        ending = Ending("fail", "the export does not match the policy; it was not kept")
    elif gguf is None:
        ending = Ending("pass", "the export matches the policy")
    else:
        ending, document["gguf"] = _export_gguf(session, run, target, gguf, prompts or _PROMPTS_OF_LLAMA_CPP)
    code = 0 if ending.verdict == "pass" else 1  # an export that does not match is a fault
    return end(session, ending, {"exit_code": code, **document}, code)


def _beside(exported: Path, kind: str) -> Path:
    return exported.with_name(f"{exported.name}-{kind}")


def _export_gguf(session: Session, run: Run, exported: Path, kind: str, prompts: int) -> tuple[Ending, dict[str, Any]]:
    """Write the merged model of an export for llama.cpp; return the ending and the part of the JSON document."""
    from rc1_lib.training.export.gguf_export import GGUFMismatchError, export_gguf
    from rc1_lib.training.export.gguf_file import GGUFType

    with stages():
        try:
            done = export_gguf(run, exported, _beside(exported, kind), GGUFType(kind), prompts)
            found, file = done.found, str(done.file)
            session.show(*[_IDS_ONLY] * done.ids_only)
        except GGUFMismatchError as fault:
            found, file = fault.found, None
            session.show(str(fault))
    session.show(_gguf_table(found), *([f"written: {file}"] if file else []))
    if file:
        ending = Ending("pass", "the export matches the policy, llama.cpp the model")
    else:
        ending = Ending("fail", "llama.cpp does not match the model; its file was not kept")
    return ending, {"file": file, "likeness": found.body()}


def _gguf_table(found: GGUFParityReport) -> Table:
    bounds = found.body()
    tokens = "equal" if found.passed else "DIFFERENT"
    said = f"greedy tokens, {found.tokens} after {found.prompts} prompts"
    difference, most = f"{found.logprob_difference:.1e}", f"<= {bounds['max_logprob_difference']:g}"
    rows = (
        (said, f"{100 * found.same_tokens:.2f} %", f">= {100 * bounds['min']:g} %", tokens),
        ("mean difference of log p", difference, most, tokens),
    )
    return table("llama.cpp compared with the model", ("what", "found", "wanted", "state"), rows)


def _likeness_table(found: Mapping[str, ParityReport]) -> Table:
    numbers = ("largest logit difference", "at most", "different greedy tokens", "of", "ties")
    rows = [
        (name, f"{one.logit_difference:.1e}", f"{one.tolerance:g}", one.other_tokens, one.tokens, one.ties,
         "equal" if one.passed else "DIFFERENT")
        for name, one in found.items()
    ]  # fmt: skip
    return table("compared with the policy", ("part", *numbers, "state"), rows, numbers)


def found_checkpoint(session: Session, name: str) -> Path:
    """Return the path of the checkpoint that a user names: latest, a step of checkpoints/rc1, or a path."""
    from rc1_lib.training.checkpoint.retention import resolve_named
    from rc1_lib.training.run_paths import CHECKPOINTS, LEDGER

    place = session.workspace
    rule = "training.checkpoints.keep_last (run.keep_last of a small configuration)"
    return resolve_named(name, place.path(CHECKPOINTS), place, place.path(LEDGER), rule, "name one of them")


def _folders(root: Path) -> list[Path]:
    """Return the folders below `checkpoints/` that may contain checkpoints: each run's, and its best ones."""
    runs = [path for path in sorted((root / "checkpoints").glob("*")) if path.is_dir()]
    return [folder for run in runs for folder in (run, run / "best") if folder.is_dir()]


def _rows(session: Session, folder: Path) -> list[dict[str, Any]]:
    from rc1_lib.training.checkpoint.atomic_folder import LATEST, CheckpointError
    from rc1_lib.training.checkpoint.manifest import fingerprint, read_verified, settle, step_of, step_of_kept
    from rc1_lib.training.checkpoint.retention import BEST

    settle(folder)
    newest = os.path.basename(os.path.realpath(folder / LATEST))  # `resolve` raises on a circular link
    rows = []
    number = step_of_kept if folder.name == BEST else step_of
    for path in sorted(folder.glob("step_*")):
        step = number(path)
        if step is None:  # a user's own file or folder, such as `step_00012_backup`
            continue
        sha256, damage = None, None
        try:
            read_verified(path)
            sha256 = fingerprint(path)
        except CheckpointError as error:
            damage = str(error)
        rows.append(
            {
                "path": session.workspace.name(path),
                "step": step,
                # `stat` would raise on a circular link.
                "bytes": sum(file.lstat().st_size for file in path.glob("*")),
                "sha256": sha256,
                "latest": path.name == newest,
                "state": "DAMAGED" if damage else "whole",
                "damage": damage,
            }
        )
    return rows
