"""Training a checkpoint again that was lost or altered, without disturbing what was trained after it.

Going on in place would set `latest`, the metrics and TensorBoard back to the lost step, although the run has long gone
past it. So the steps are trained in a folder of their own, and only the checkpoint is put back. Training is
deterministic: it is the same bytes again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.manifest import NAME, folder_name, read_verified, steps
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.ppo_run import Prepared, advance, resumable
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.workspace.artifacts import Workspace

_BESIDE = ".retrained"


def reach(prepared: Prepared, seed: int, last: int, notice: Callable[[str], None]) -> Path:
    """Bring a run to step `last` as `advance` does; where the run has gone past it already, next to the run.

    Args:
        prepared: what the run rests on.
        seed: of the run.
        last: the step.
        notice: called with what is gone on from, and with what cannot be used.

    Returns:
        The checkpoint of step `last`, or of the one before it at which the run has ended by itself.

    Raises:
        RC1Error: when the configuration is refused.
        DivergedError: when training leaves the finite numbers.
    """
    folder = prepared.run.workspace.path(paths_of(prepared.run, seed).checkpoints)
    there = steps(folder)
    if _usable(prepared, seed, last) or not any(_usable(prepared, seed, step) for step in there if step > last):
        return advance(prepared, seed, last, notice)
    notice(f"step {last} is trained again next to the run, which has gone past it")
    beside = folder.with_name(f"{_BESIDE}-{folder.name}")
    shutil.rmtree(beside, ignore_errors=True)  # of one that was killed
    try:
        _put_back(_trained_beside(prepared, seed, last, beside, notice), folder / folder_name(last))
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder / folder_name(last)


def _usable(prepared: Prepared, seed: int, step: int) -> bool:
    try:
        resumable(prepared, seed, str(step))
    except CheckpointError:
        return False
    return True


def _trained_beside(prepared: Prepared, seed: int, last: int, beside: Path, notice: Callable[[str], None]) -> Path:
    """Train up to `last` in a workspace of its own, from the newest earlier checkpoint of the run."""
    place = paths_of(prepared.run, seed).checkpoints
    elsewhere = replace(prepared, run=replace(prepared.run, workspace=Workspace(beside)))
    for step in sorted(steps(prepared.run.workspace.path(place)), reverse=True):
        if step < last and _usable(prepared, seed, step):
            state = load_checkpoint(prepared.run.workspace.path(place) / folder_name(step))
            save_checkpoint(state, beside / place, beside / LEDGER)
            break
    return advance(elsewhere, seed, last, notice)


def _put_back(checkpoint: Path, target: Path) -> None:
    """Copy a checkpoint into its place, whole or not at all; `latest` stays where it is.

    Raises:
        CheckpointError: when it is of another step.
    """
    if checkpoint.name != target.name:
        raise CheckpointError(
            f"{target}: the repeated training stopped early at {checkpoint.name} (training.early_stop), but the run "
            f"had gone past it; move {target.parent} away and train again"
        )
    contents = read_verified(checkpoint)
    with atomic_folder.alone(target.parent):
        atomic_folder.recover(target.parent)
        with atomic_folder.new_folder(target) as temporary:
            for name, content in contents.items():
                (temporary / name).write_bytes(content)
            shutil.copyfile(checkpoint / NAME, temporary / NAME)
