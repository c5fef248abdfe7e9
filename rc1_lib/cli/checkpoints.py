"""`ckpt list|diff|export|gguf`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from rc1_lib.cli.endings import Ending, Failure, end, then
from rc1_lib.cli.options import Checkpoint
from rc1_lib.cli.session import Session, quieten_models, stages
from rc1_lib.cli.tables import table
from rc1_lib.runtime.libraries import quieten

if TYPE_CHECKING:
    from rc1_lib.training.export.parity import GGUFParityReport, ParityReport

_DAMAGED = "restore its files from a copy, or move it away: training resumes from the newest intact one"
_NEW = "A new folder in the workspace. Default:"
_IDS_ONLY = "llama.cpp has no pre-tokenizer that cuts texts as this tokenizer does: give the file token ids, not texts"


def diff(
    session: Session,
    a: Checkpoint,
    b: Annotated[str, typer.Argument(help="The checkpoint to compare it with.")],
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare tensors bit for bit, dtypes included; otherwise as numbers.")
    ] = False,
) -> int:
    """Show what differs between two checkpoints; exit with 0 if they are equal, 2 if they differ."""
    from rc1_lib.training.checkpoint.save_load import load_checkpoint
    from rc1_lib.training.checkpoint.state import diff_checkpoints

    paths = [found_checkpoint(session, name) for name in (a, b)]
    found = diff_checkpoints(load_checkpoint(paths[0]), load_checkpoint(paths[1]), exact)
    session.show_some(f"{one.where}: {one.what}" for one in found)
    how = "bit for bit" if exact else "as numbers"
    names = " and ".join(session.workspace.name(path) for path in paths)
    words = f"{f'{len(found)} differences' if found else 'equal'}, compared {how}: {names}"
    listed = [{"where": one.where, "what": one.what} for one in found]
    document = {"equal": not found, "exact": exact, "differences": listed}
    return end(session, Ending("fail" if found else "pass", words), document)


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
    return end(session, _state_of(session, rows), {"checkpoints": rows})


def _state_of(session: Session, rows: list[dict[str, Any]]) -> Ending:
    """Return whether all checkpoints are intact, and what to do with the newest one."""
    if not rows:
        return Ending("done", "there are no checkpoints in this workspace", following=then(session, "train"))
    if damaged := [Failure(f"{row['path']}: {row['damage']}", _DAMAGED) for row in rows if row["damage"]]:
        return Ending("fail", f"{len(damaged)} of {len(rows)} checkpoints are damaged", damaged)
    newest = next((row["path"] for row in rows if row["latest"]), rows[-1]["path"])
    return Ending("pass", f"{len(rows)} checkpoints, all whole", following=then(session, "ckpt export", newest))


def export(
    session: Session,
    checkpoint: Checkpoint,
    to: Annotated[Path | None, typer.Option(help=f"{_NEW} models/export/ and the checkpoint's name.")] = None,
    prompts: Annotated[
        int, typer.Option(min=1, help="Held-out prompts on which the written model must match the policy.")
    ] = 32,
) -> int:
    """Export a policy for other programs: an adapter for peft, a merged model for transformers, and a manifest.

    Both are read back and compared with the engine's policy, by logits and greedy tokens. If they differ,
    nothing is written and the exit code is 1.
    """
    run = session.open(remembered=True)
    found_at = found_checkpoint(session, checkpoint)  # before the libraries are imported, which takes seconds
    from rc1_lib.preflight.carried_ticket import check_still_vouched
    from rc1_lib.training.checkpoint.manifest import fingerprint

    check_still_vouched(run, found_at, fingerprint(found_at))
    quieten_models(run)
    from rc1_lib.training.export.checkpoint_export import ExportMismatchError, export_checkpoint

    target = session.new_folder("--to", to, f"models/export/{found_at.parent.name}-{found_at.name}")
    with stages():
        try:
            found, folder = export_checkpoint(run, found_at, target, prompts).found, str(target)
        except ExportMismatchError as fault:
            found, folder = fault.found, None
            session.show(str(fault))
    session.show(_likeness_table(found), *([f"exported: {folder}"] if folder else []))
    if folder:
        ending = Ending("pass", "the export matches the policy", following=then(session, "ckpt gguf", folder))
    else:
        ending = Ending("fail", "the export does not match the policy; it was not kept")
    likeness = {name: one.body() for name, one in found.items()}
    return _end_export(session, ending, {"folder": folder, "likeness": likeness})


def _end_export(session: Session, ending: Ending, document: dict[str, Any]) -> int:
    """Like `end`, but an export that does not match is a fault, exit code 1."""
    code = 0 if ending.verdict == "pass" else 1
    return end(session, ending, {"exit_code": code, **document}, code)


def gguf(
    session: Session,
    exported: Annotated[str, typer.Argument(help="A folder that `rc1 ckpt export` wrote, by its path.")],
    kind: Annotated[Literal["f32", "f16", "q8_0"], typer.Option("--type", help="How matrices are stored.")] = "f16",
    to: Annotated[Path | None, typer.Option(help=f"{_NEW} the export's name and the type.")] = None,
    prompts: Annotated[
        int, typer.Option(min=1, help="Held-out prompts on which llama.cpp must give the same tokens.")
    ] = 200,
) -> int:
    """Write an export's merged model as a GGUF file for llama.cpp (extra `gguf`).

    llama.cpp reads the file and continues held-out prompts greedily. If its tokens or
    probabilities differ from the model's, nothing is written and the exit code is 1.
    """
    run = session.open(remembered=True)
    from rc1_lib.preflight.carried_ticket import check_still_vouched
    from rc1_lib.training.export.gguf_export import GGUFMismatchError, checkpoint_of_export, export_gguf
    from rc1_lib.training.export.gguf_file import GGUFType

    source = run.workspace.path(exported)
    target = session.new_folder("--to", to, f"models/export/{source.name}-{kind}")
    check_still_vouched(run, *checkpoint_of_export(run, source))
    quieten(hub=False)
    with stages():
        try:
            done = export_gguf(run, source, target, GGUFType(kind), prompts)
            found, file = done.found, str(done.file)
            session.show(*[_IDS_ONLY] * done.ids_only)
        except GGUFMismatchError as fault:
            found, file = fault.found, None
            session.show(str(fault))
    session.show(_gguf_table(found), *([f"written: {file}"] if file else []))
    if file:
        following = then(session, "evaluate", file, "--engine", "gguf")
        ending = Ending("pass", "llama.cpp matches the model", following=following)
    else:
        ending = Ending("fail", "llama.cpp does not match the model; no file was kept")
    return _end_export(session, ending, {"file": file, "likeness": found.body()})


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
