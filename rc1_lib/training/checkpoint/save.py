"""Writing a checkpoint: a folder that appears whole, then the `latest` link, then a line in the ledger."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
from safetensors.torch import save_file

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.ledger import record_all
from rc1_lib.training.checkpoint.manifest import NAME, write_manifest
from rc1_lib.training.checkpoint.names import LATEST, folder_name, step_of
from rc1_lib.training.checkpoint.state import CheckpointState

STATE = "state.json"
_GROUP = re.compile(r"[a-z][a-z0-9_]*")


def save_checkpoint(state: CheckpointState, folder: Path, ledger: Path) -> Path:
    """Write `folder/step_XXXXX`, let `folder/latest` lead to it and add it to `ledger`.

    A kill at any moment leaves the checkpoints that were there, and the new one wholly or not at all. A checkpoint of
    the same step is replaced: the run that comes past a step owns it.

    Args:
        state: what to save; tensors may lie on any device.
        folder: where this run's checkpoints lie.
        ledger: `reports/ckpt_manifest.jsonl`.

    Returns:
        The checkpoint's folder.

    Raises:
        CheckpointError: while another process writes there, or when a file is in the way.
    """
    target = folder / folder_name(state.step)
    with atomic_folder.alone(folder):
        atomic_folder.recover(folder)
        with atomic_folder.new_folder(target) as temporary:
            _write(state, temporary)
        atomic_folder.point(folder / LATEST, target.name)
        record_all(folder, ledger)
    return target


def finish_interrupted(folder: Path, ledger: Path, step: int) -> None:
    """Do what a kill may have left undone once the checkpoint of `step` was in its place: the link and the ledger.

    For whoever finds that checkpoint whole and so saves nothing himself. A link to a later step stays.

    Args:
        folder: where the run's checkpoints lie.
        ledger: `reports/ckpt_manifest.jsonl`.
        step: of the checkpoint.

    Raises:
        CheckpointError: while another process writes there, or when a file is in the way.
    """
    target = folder / folder_name(step)
    with atomic_folder.alone(folder):
        atomic_folder.recover(folder)
        if not (target / NAME).is_file():
            return
        newest = _newest(folder)
        if newest is None or newest < step:
            atomic_folder.point(folder / LATEST, target.name)
        record_all(folder, ledger)


def _newest(folder: Path) -> int | None:
    """The step of the checkpoint that `latest` leads to; None where it leads to none."""
    newest = (folder / LATEST).resolve()
    return step_of(newest) if (newest / NAME).is_file() else None


def _write(state: CheckpointState, folder: Path) -> None:
    for group, tensors in state.tensors.items():
        assert _GROUP.fullmatch(group), f"a group's name becomes a file's: {group!r}"
        # Clones, because safetensors refuses tensors that share memory (tied weights, views).
        held = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
        save_file(held, folder / f"{group}.safetensors")
    content = orjson.dumps(state.values, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    # orjson writes NaN as null and tuples as lists: what would come back otherwise than it went in is refused here.
    assert orjson.loads(content) == state.values, "values of a checkpoint have to survive JSON; use `trees` otherwise"
    (folder / STATE).write_bytes(content + b"\n")
    write_manifest(folder, state.step)
