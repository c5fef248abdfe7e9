"""How checkpoints are called, and which one a user means by `latest`, a step or a path."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.fault import CheckpointError
from rc1_lib.training.checkpoint.manifest import NAME

LATEST = atomic_folder.LATEST


def folder_name(step: int) -> str:
    """`step_00012` for step 12; longer numbers keep all their digits."""
    assert step >= 0, f"step {step}"
    return f"step_{step:05d}"


def step_of(path: Path) -> int | None:
    """The step that a folder's name gives, or None when it is no checkpoint's name."""
    return None if path.suffix else step_of_kept(path)


def step_of_kept(path: Path) -> int | None:
    """As `step_of`, for one kept for good: its name may have a number after it, as in `step_00012.2`."""
    match = atomic_folder.CHECKPOINTS.fullmatch(path.name)
    return int(match[1]) if match else None


def steps(folder: Path) -> dict[int, Path]:
    """Step -> checkpoint in `folder`, ascending."""
    found = [(step_of(path), path) for path in folder.glob("step_*") if path.is_dir()]
    return dict(sorted((step, path) for step, path in found if step is not None))


def resolve(name: str | int, folder: Path) -> Path:
    """The checkpoint that `name` means: `latest`, a step's number, or a path (a link is followed).

    Raises:
        CheckpointError: when there is none, saying which there are.
    """
    settle(folder)
    text = str(name)
    if text == LATEST:
        found = folder / LATEST
    elif text.isdecimal():
        found = folder / folder_name(int(text))
    else:
        found = Path(text)
        settle(found.parent)
    if not (found / NAME).is_file():
        there = ", ".join(str(step) for step, path in steps(folder).items() if (path / NAME).is_file()) or "none"
        what = (
            f"has no {NAME}, so it is no checkpoint that RC1 finished" if found.is_dir() else "there is no checkpoint"
        )
        raise CheckpointError(f"{found}: {what}; steps in {folder}: {there}; name one of them")
    return found.resolve()


def settle(folder: Path) -> None:
    """Undo a replacement of a checkpoint that was killed half way. Nothing else in `folder` is touched."""
    if folder.is_dir() and atomic_folder.needs_recovery(folder):
        with atomic_folder.alone(folder):
            atomic_folder.recover(folder)
