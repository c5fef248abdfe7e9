"""`ckpt list` and `ckpt diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from rc1_lib.cli.session import Session

_SHOWN = 40
"""Differences that a terminal is told; JSON holds all."""


def diff(
    session: Session,
    a: Annotated[str, typer.Argument(help="A checkpoint: latest, a step of checkpoints/rc1, or a path.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare tensors bit for bit, dtypes included; else as numbers.")
    ] = False,
) -> int:
    """Say what differs between two checkpoints; exit 0 when nothing does, 2 when something does."""
    from rc1_lib.training.checkpoint.diff import diff_checkpoints
    from rc1_lib.training.checkpoint.load import load_checkpoint

    paths = [_found(session, name) for name in (a, b)]
    found = diff_checkpoints(load_checkpoint(paths[0]), load_checkpoint(paths[1]), exact)
    session.show(*(f"{one.where}: {one.what}" for one in found[:_SHOWN]))
    if len(found) > _SHOWN:
        session.show(f"and {len(found) - _SHOWN} more; --json lists all")
    how = "bit for bit" if exact else "as numbers"
    names = " and ".join(session.workspace.name(path) for path in paths)
    session.show(f"{names}: {f'{len(found)} differences' if found else 'equal'}, compared {how}")
    listed = [{"where": one.where, "what": one.what} for one in found]
    session.document({"equal": not found, "exact": exact, "differences": listed})
    return 2 if found else 0


def show(session: Session) -> int:
    """List the checkpoints below `checkpoints/`, those kept for good too, every byte checked against its manifest."""
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


def _found(session: Session, name: str) -> Path:
    from rc1_lib.training.checkpoint.names import resolve
    from rc1_lib.training.run_paths import CHECKPOINTS

    below = session.workspace.path(name)
    return resolve(str(below) if "/" in name and below.exists() else name, session.workspace.path(CHECKPOINTS))


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
    newest = (folder / LATEST).resolve().name
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
                "bytes": sum(file.stat().st_size for file in path.glob("*")),
                "sha256": sha256,
                "latest": path.name == newest,
                "state": "DAMAGED" if damage else "whole",
                "damage": damage,
            }
        )
    return rows
