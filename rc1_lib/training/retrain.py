"""Reproduce a lost or altered checkpoint without disturbing what was trained after it.

Resuming in place would set `latest`, the metrics and TensorBoard back to the lost step. So the steps are trained again
in a folder of their own, and only the checkpoint is copied back. Training is deterministic, so it has the same bytes,
unless vLLM samples or another CPU trains: then the ledger gets the new ones too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import record
from rc1_lib.training.checkpoint.manifest import NAME, folder_name, read_verified, steps
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.ppo_run import Prepared, advance, resumable
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.workspace.artifacts import Workspace

_BESIDE = ".retrained"


def reach(prepared: Prepared, seed: int, last: int, notice: Callable[[str], None]) -> Path:
    """Train a run to step `last` as `advance` does. If the run is already past it, do so in a separate folder.

    Args:
        prepared: what determines the run.
        notice: called with the checkpoint to resume from, and with those that cannot be used.

    Returns:
        The checkpoint of step `last`, or of the earlier step at which the run ended by itself.

    Raises:
        RC1Error: if the configuration is rejected.
        DivergedError: if a number is NaN or infinite.
    """
    folder = prepared.run.workspace.path(paths_of(prepared.run, seed).checkpoints)
    there = steps(folder)
    if _usable(prepared, seed, last) or not any(_usable(prepared, seed, step) for step in there if step > last):
        return advance(prepared, seed, last, notice)
    notice(f"step {last} is trained again in a separate folder, because the run is already past it")
    beside = folder.with_name(f"{_BESIDE}-{folder.name}")
    shutil.rmtree(beside, ignore_errors=True)  # left by a killed process
    try:
        again = _trained_beside(prepared, seed, last, beside, notice)
        _put_back(again, folder / folder_name(last), prepared.run.workspace.path(LEDGER))
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
    """Train up to `last` in a temporary workspace, from the run's newest earlier checkpoint."""
    place = paths_of(prepared.run, seed).checkpoints
    elsewhere = replace(prepared, run=replace(prepared.run, workspace=Workspace(beside)))
    for step in sorted(steps(prepared.run.workspace.path(place)), reverse=True):
        if step < last and _usable(prepared, seed, step):
            state = load_checkpoint(prepared.run.workspace.path(place) / folder_name(step))
            save_checkpoint(state, beside / place, beside / LEDGER)
            break
    return advance(elsewhere, seed, last, notice)


def _put_back(checkpoint: Path, target: Path, ledger: Path) -> None:
    """Copy a checkpoint into place atomically, and add it to the ledger. `latest` does not change.

    Raises:
        CheckpointError: if its step is not the expected one.
    """
    if checkpoint.name != target.name:
        raise CheckpointError(
            f"{target}: the repeated training stopped early at {checkpoint.name} (training.early_stop), but the run "
            f"had gone past it; move {target.parent} away and train again"
        )
    contents = read_verified(checkpoint)
    with atomic_folder.write_lock(target.parent):
        atomic_folder.recover(target.parent)
        with atomic_folder.new_folder(target) as temporary:
            for name, content in contents.items():
                (temporary / name).write_bytes(content)
            shutil.copyfile(checkpoint / NAME, temporary / NAME)
            record(temporary, target, ledger)
