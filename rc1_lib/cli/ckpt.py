"""`ckpt list`, `ckpt diff`, `ckpt export`, `ckpt gguf` and `ckpt dequantize`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.following import then
from rc1_lib.cli.quiet import quieten
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.errors import ConfigError

if TYPE_CHECKING:
    from rc1_lib.training.handover.dequantize import Gap
    from rc1_lib.training.handover.gguf_likeness import GGUFLikeness
    from rc1_lib.training.handover.likeness import Likeness

_SHOWN = 40
"""Differences that a terminal shows; JSON holds all."""


def diff(
    session: Session,
    a: Annotated[str, typer.Argument(help="A checkpoint: latest, a step of checkpoints/rc1, or a path.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare tensors bit for bit, dtypes included; else as numbers.")
    ] = False,
) -> int:
    """Say what differs between two checkpoints; exit 0 when nothing does, 2 when something does."""
    from rc1_lib.training.checkpoint.save_load import load_checkpoint
    from rc1_lib.training.checkpoint.state import diff_checkpoints

    paths = [found_checkpoint(session, name) for name in (a, b)]
    found = diff_checkpoints(load_checkpoint(paths[0]), load_checkpoint(paths[1]), exact)
    session.show(*(f"{one.where}: {one.what}" for one in found[:_SHOWN]))
    if len(found) > _SHOWN:
        session.show(f"and {len(found) - _SHOWN} more; --json lists all")
    how = "bit for bit" if exact else "as numbers"
    names = " and ".join(session.workspace.name(path) for path in paths)
    words = f"{f'{len(found)} differences' if found else 'equal'}, compared {how}: {names}"
    show_ending(session, Ending("fail" if found else "pass", words))
    listed = [{"where": one.where, "what": one.what} for one in found]
    session.document({"equal": not found, "exact": exact, "differences": listed})
    return 2 if found else 0


def show(session: Session) -> int:
    """List the checkpoints below `checkpoints/`, and check every byte against its manifest."""
    rows = [row for folder in _folders(session.workspace.root) for row in _rows(session, folder)]
    table = Table(title="checkpoints", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("checkpoint", "step", "MB", "SHA-256 of its manifest", "state"):
        table.add_column(head, no_wrap=True, justify="right" if head in ("step", "MB") else "left")
    for row in rows:
        name = f"{row['path']}{' (latest)' if row['latest'] else ''}"
        table.add_row(name, str(row["step"]), f"{row['bytes'] / 1e6:.1f}", (row["sha256"] or "")[:16], row["state"])
    damaged = [f"{row['path']}: {row['damage']}" for row in rows if row["damage"]]
    session.show(
        table if rows else f"{session.workspace.path('checkpoints')}: there are no checkpoints; rc1 train", *damaged
    )
    session.document({"checkpoints": rows})
    return 2 if damaged else 0


def export(
    session: Session,
    checkpoint: Annotated[str, typer.Argument(help="A checkpoint: latest, a step of checkpoints/rc1, or a path.")],
    to: Annotated[
        Path | None,
        typer.Option(
            help="A folder of the workspace that is not there yet. Default: models/export/ and the checkpoint's name."
        ),
    ] = None,
    prompts: Annotated[
        int, typer.Option(min=1, help="Held-out prompts on which what was written has to be the policy.")
    ] = 32,
) -> int:
    """Write a policy for other programs: an adapter for peft, a merged model for transformers, and a manifest.

    Give the flags of its training. Both are read again and compared with the engine's own policy, logits and greedy
    tokens; where they differ nothing is written, and the exit code is 1.
    """
    run = session.open()
    session.started = True
    from rc1_lib.training.handover.export import UnlikeError, export_checkpoint

    found_at = found_checkpoint(session, checkpoint)
    target = session.new_folder("--to", to, f"models/export/{found_at.parent.name}-{found_at.name}")
    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
    with stages():
        try:
            found, folder = export_checkpoint(run, found_at, target, prompts).found, str(target)
        except UnlikeError as fault:
            found, folder = fault.found, None
            session.show(str(fault))
    session.show(_likeness_table(found), *([f"exported: {folder}"] if folder else []))
    code = 0 if folder else 1
    following = then(session, "ckpt gguf", folder) if folder else ""
    words = "the export is the policy" if folder else "what was written is not the policy, and is not kept"
    show_ending(session, Ending("pass" if folder else "fail", words, following=following))
    bodies = {name: one.body() for name, one in found.items()}
    session.document({"exit_code": code, "folder": folder, "likeness": bodies})
    return code


def gguf(
    session: Session,
    exported: Annotated[str, typer.Argument(help="A folder that `rc1 ckpt export` wrote, by its path.")],
    kind: Annotated[str, typer.Option("--type", help="How matrices are stored: f32, f16 or q8_0.")] = "f16",
    to: Annotated[
        Path | None,
        typer.Option(help="A folder of the workspace that is not there yet. Default: the export's name and the type."),
    ] = None,
    prompts: Annotated[int, typer.Option(min=1, help="Held-out prompts on which llama.cpp has to say the same.")] = 200,
    token_ids_only: Annotated[
        bool, typer.Option(help="Keep the file although llama.cpp tokenises texts otherwise; it says so itself.")
    ] = False,
) -> int:
    """Write an export's merged model as a GGUF file for llama.cpp (extra `gguf`).

    Give the flags of its training. llama.cpp reads the file and continues held-out prompts greedily: where it says
    other tokens than the model, or with other probabilities, or tokenises texts otherwise, nothing is written, and the
    exit code is 1.
    """
    run = session.open()
    session.started = True
    from rc1_lib.training.handover.gguf_export import UnlikeGGUFError, export_gguf
    from rc1_lib.training.handover.gguf_file import GGUFType

    if kind not in [*GGUFType]:
        raise ConfigError(f"--type: found '{kind}', expected one of {', '.join(GGUFType)}")
    source = run.workspace.path(exported)
    target = session.new_folder("--to", to, f"models/export/{source.name}-{kind}")
    quieten(hub=False)
    with stages():
        try:
            done = export_gguf(run, source, target, GGUFType(kind), prompts, ids_only=token_ids_only)
            found, file = done.found, str(done.file)
        except UnlikeGGUFError as fault:
            found, file = fault.found, None
            session.show(str(fault))
    session.show(_gguf_table(found, token_ids_only), *([f"written: {file}"] if file else []))
    code = 0 if file else 1
    following = then(session, "evaluate", file, "--engine", "gguf") if file else ""
    words = "llama.cpp says what the model says" if file else "llama.cpp does not say what the model says: nothing kept"
    show_ending(session, Ending("pass" if file else "fail", words, following=following))
    session.document({"exit_code": code, "file": file, "likeness": found.body()})
    return code


def dequantize(
    session: Session,
    to: Annotated[
        Path | None,
        typer.Option(
            help="A folder of the workspace that is not there yet. Default: models/export/start- and the precision."
        ),
    ] = None,
    precision: Annotated[str, typer.Option(help="Of the weights that are written: bf16, fp16 or fp32.")] = "bf16",
    prompts: Annotated[
        int, typer.Option(min=1, help="Held-out dialogues on which what was written has to be the policy.")
    ] = 32,
) -> int:
    """Write what a QLoRA training starts from as plain weights, for a server (`finetune.method: qlora`).

    Give the flags of the training. Every linear layer holds the numbers that its 4 bits stand for. The folder is read
    again and compared with the policy in 4 bits; beyond the bounds of `training.parity` nothing is written, and the
    exit code is 1.
    """
    run = session.open()
    session.started = True
    from rc1_lib.training.device import Precision
    from rc1_lib.training.handover.dequantize import export_dequantized

    if precision not in [*Precision]:
        raise ConfigError(f"--precision: found '{precision}', expected one of {', '.join(Precision)}")
    target = session.new_folder("--to", to, f"models/export/start-{precision}")
    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
    with stages():
        done = export_dequantized(run, target, Precision(precision), prompts)
    session.show(_gap_table(done.gap))
    if done.folder:
        session.show(f"written: {done.folder}")
        ending = Ending("pass", f"as {precision} it lies within training.parity")
    else:
        finer = "" if precision == Precision.FP32 else "; --precision fp32 is the nearest"
        ending = Ending("fail", f"as {precision} it lies beyond training.parity; nothing is kept{finer}")
    show_ending(session, ending)
    code = 0 if done.folder else 1
    folder = str(done.folder) if done.folder else None
    session.document({"exit_code": code, "folder": folder, "gap": done.gap.body()})
    return code


def _gap_table(gap: Gap) -> Table:
    table = Table(title="compared with the policy in 4 bits", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("what", "found", "at most"):
        table.add_column(head, justify="left" if head == "what" else "right")
    said = f"{gap.tokens:,} tokens of {gap.dialogues} dialogues"
    table.add_row(f"mean difference of log p, {said}", f"{gap.mean:.2g}", f"{gap.most_mean:g}")
    table.add_row("tokens farther than 0.1 nats", f"{gap.far_share:.2%}", f"{gap.most_far_share:.2%}")
    return table


def _gguf_table(found: GGUFLikeness, ids_only: bool) -> Table:
    table = Table(title="llama.cpp compared with the model", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("what", "found", "wanted", "state"):
        table.add_column(head)
    bounds = found.body()
    tokens = "equal" if found.tokens_passed else "NOT THE MODEL"
    texts = "equal" if found.texts_passed else "OTHERWISE (waived)" if ids_only else "OTHERWISE"
    said = f"greedy tokens, {found.tokens} after {found.prompts} prompts"
    table.add_row(said, f"{100 * found.same_tokens:.2f} %", f">= {100 * bounds['min']:g} %", tokens)
    difference, most = f"{found.logprob_difference:.1e}", f"<= {bounds['max_logprob_difference']:g}"
    table.add_row("mean difference of log p", difference, most, tokens)
    table.add_row("texts tokenised alike", f"{found.same_texts} of {found.texts}", "all", texts)
    return table


def _likeness_table(found: Mapping[str, Likeness]) -> Table:
    table = Table(title="compared with the policy", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("part", "largest difference of a logit", "at most", "other greedy tokens", "of", "ties", "state"):
        table.add_column(head, justify="left" if head in ("part", "state") else "right")
    for name, one in found.items():
        numbers = (f"{one.logit_difference:.1e}", f"{one.tolerance:g}", one.other_tokens, one.tokens, one.ties)
        table.add_row(name, *map(str, numbers), "equal" if one.passed else "NOT THE POLICY")
    return table


def found_checkpoint(session: Session, name: str) -> Path:
    """The checkpoint that a user names: latest, a step of checkpoints/rc1, or a path."""
    from rc1_lib.training.checkpoint.retention import resolve_named
    from rc1_lib.training.run_paths import CHECKPOINTS, LEDGER

    place = session.workspace
    rule = "training.checkpoints.keep_last (run.keep_last of a small configuration)"
    return resolve_named(name, place.path(CHECKPOINTS), place, place.path(LEDGER), rule, "name one of them")


def _folders(root: Path) -> list[Path]:
    """Every folder below `checkpoints/` that may hold checkpoints: of a run, and of those kept for good."""
    runs = [path for path in sorted((root / "checkpoints").glob("*")) if path.is_dir()]
    return [folder for run in runs for folder in (run, run / "best") if folder.is_dir()]


def _rows(session: Session, folder: Path) -> list[dict[str, Any]]:
    from rc1_lib.training.checkpoint.manifest import fingerprint, read_verified
    from rc1_lib.training.checkpoint.names import LATEST, settle, step_of, step_of_kept
    from rc1_lib.training.checkpoint.retention import BEST
    from rc1_lib.training.checkpoint.state import CheckpointError

    settle(folder)
    newest = os.path.basename(os.path.realpath(folder / LATEST))  # of a link in a circle `resolve` makes a fault
    rows = []
    number = step_of_kept if folder.name == BEST else step_of
    for path in sorted(folder.glob("step_*")):
        step = number(path)
        if step is None:  # somebody's own file or folder, `step_00012_backup`
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
                # Of a link in a circle there is no `stat`.
                "bytes": sum(file.lstat().st_size for file in path.glob("*")),
                "sha256": sha256,
                "latest": path.name == newest,
                "state": "DAMAGED" if damage else "whole",
                "damage": damage,
            }
        )
    return rows
