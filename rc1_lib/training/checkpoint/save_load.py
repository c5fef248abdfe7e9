"""Write and read checkpoints: a line in the ledger, then a folder that appears atomically, then the link `latest`.

Named tensors are safetensors, facts are JSON, and nested states (optimizer, random generators, callbacks) are one torch
file, read with `weights_only`. No code from a checkpoint is ever run.
"""

from __future__ import annotations

import io
import pickle
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import LATEST, CheckpointError
from rc1_lib.training.checkpoint.ledger import check_in_ledger, record
from rc1_lib.training.checkpoint.manifest import (
    NAME,
    folder_name,
    read_verified,
    settle,
    step_of,
    steps,
    write_manifest,
)
from rc1_lib.training.checkpoint.state import CheckpointState

STATE = "state.json"
NESTED = "nested.pt"
_SUFFIX = ".safetensors"
_GROUP = re.compile(r"[a-z][a-z0-9_]*")


def save_checkpoint(state: CheckpointState, folder: Path, ledger: Path) -> Path:
    """Write `folder/step_XXXXX`, point `folder/latest` to it, and add it to `ledger`.

    A kill at any moment leaves the existing checkpoints, and the new one either complete or not at all. A checkpoint of
    the same step is replaced.

    Args:
        state: what to save; tensors may be on any device.
        ledger: `reports/ckpt_manifest.jsonl`.

    Returns:
        The checkpoint's folder.

    Raises:
        CheckpointError: if another process writes there, or a file is in the way.
        TypeError: if a nested state holds anything but tensors and plain data.
    """
    target = folder / folder_name(state.step)
    with atomic_folder.write_lock(folder):
        atomic_folder.recover(folder)
        with atomic_folder.new_folder(target) as temporary:
            _write(state, temporary)
            record(temporary, target, ledger)
        atomic_folder.set_link(folder / LATEST, target.name)
    return target


def finish_interrupted(folder: Path, step: int) -> None:
    """Set the link if a kill came after the checkpoint of `step` was written and before that.

    For a caller that finds the checkpoint complete and so saves nothing. A link to a later step stays.

    Raises:
        CheckpointError: if another process writes there, or a file is in the way.
    """
    target = folder / folder_name(step)
    with atomic_folder.write_lock(folder):
        atomic_folder.recover(folder)
        if not (target / NAME).is_file():
            return
        newest = (folder / LATEST).resolve()
        found = step_of(newest) if (newest / NAME).is_file() else None
        if found is None or found < step:
            atomic_folder.set_link(folder / LATEST, target.name)


def load_checkpoint(path: Path, expected: str | None = None) -> CheckpointState:
    """Read a checkpoint after checking every byte. Tensors are on the CPU with their saved dtypes.

    Args:
        path: its folder, or a link to it.
        expected: its fingerprint (see `fingerprint`), if the caller knows it.

    Raises:
        CheckpointError: naming a file that is missing, altered, foreign or unreadable, and what to do.
    """
    settle(path.parent)
    contents = read_verified(path, expected)
    if missing := sorted({STATE, NESTED} - contents.keys()):
        raise CheckpointError(f"{path / missing[0]}: not in the manifest, so this is not a checkpoint of RC1")
    try:
        values = orjson.loads(contents.pop(STATE))
        assert isinstance(values["step"], int)
    except (ValueError, KeyError, TypeError, AssertionError):
        raise CheckpointError(
            f"{path / STATE}: not a valid state (expected a JSON object with a step); it was altered together with the "
            f"manifest, use another checkpoint"
        ) from None
    try:
        nested = torch.load(io.BytesIO(contents.pop(NESTED)), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"{path / NESTED}: cannot be read with weights_only ({type(error).__name__})") from None
    groups = {}
    for name, content in contents.items():
        if not name.endswith(_SUFFIX):
            raise CheckpointError(f"{path / name}: expected a safetensors file; RC1 reads nothing else")
        try:
            groups[name.removesuffix(_SUFFIX)] = load(content)
        except SafetensorError as error:
            raise CheckpointError(f"{path / name}: cannot be read as safetensors ({error})") from None
    state = CheckpointState(groups, values, nested)
    named = step_of(path.resolve())
    if named is not None and named != state.step:
        raise CheckpointError(f"{path}: holds step {state.step}, but its name says step {named}; rename it back")
    return state


def load_to_resume(path: Path, ledger: Path) -> CheckpointState:
    """Do as `load_checkpoint`, for resuming.

    Args:
        path: its folder, or a link to it.
        ledger: `reports/ckpt_manifest.jsonl`, which lists what was written there.

    Raises:
        CheckpointError: also if another checkpoint was put in its place, or if a number in it is not finite.
    """
    state = load_checkpoint(path)
    check_in_ledger(path, ledger)
    for fault in not_finite(state):
        raise CheckpointError(
            f"{path}: {fault}, so training cannot continue from it. Remove this checkpoint, and training resumes from "
            "the one before it; if the next one has the same fault, lower the learning rate"
        )
    return state


def not_finite(state: CheckpointState) -> Iterator[str]:
    """Yield each tensor with a NaN or an infinity: its name and file, and how many of its numbers."""
    parts = {f"{name}{_SUFFIX}": group for name, group in state.tensors.items()} | {NESTED: state.nested}
    for file, part in parts.items():
        for name, tensor in _tensors(part, ""):
            if tensor.is_floating_point() and (wrong := int((~tensor.isfinite()).sum())):
                yield f"{name} in {file} holds {wrong} of {tensor.numel()} numbers that are not finite"


def _tensors(part: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(part, Tensor):
        yield name, part
    elif isinstance(part, Mapping | list | tuple):
        for key, inner in part.items() if isinstance(part, Mapping) else enumerate(part):
            yield from _tensors(inner, f"{name}.{key}" if name else str(key))


def _write(state: CheckpointState, folder: Path) -> None:
    for group, tensors in state.tensors.items():
        assert _GROUP.fullmatch(group), f"a group's name must be valid as a file name: {group!r}"
        save_file({name: _alone(tensor) for name, tensor in tensors.items()}, folder / f"{group}{_SUFFIX}")
    content = orjson.dumps(state.values, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    # orjson writes NaN as null and tuples as lists, so reject values that would not come back as they were.
    assert orjson.loads(content) == state.values, "values of a checkpoint must survive JSON; use `nested` otherwise"
    (folder / STATE).write_bytes(content + b"\n")
    # In memory first: torch writes the file's name into the file, and reports a full disk as an unclear error.
    stream = io.BytesIO()
    torch.save(_plain(state.nested, ""), stream)
    (folder / NESTED).write_bytes(stream.getvalue())
    write_manifest(folder, state.step)


def _alone(tensor: Tensor) -> Tensor:
    """Copy a tensor to the CPU. Safetensors rejects shared memory, and torch would save all of a shared storage."""
    return tensor.detach().cpu().contiguous().clone()


def _plain(part: Any, where: str) -> Any:
    """Convert to plain types with equal strings as one object, so that equal states are pickled to equal bytes."""
    if isinstance(part, Tensor):
        return _alone(part)
    if isinstance(part, Mapping):
        return {_plain(key, where): _plain(value, f"{where}.{key}") for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(_plain(value, f"{where}.{place}") for place, value in enumerate(part))
    if type(part) is str:
        return sys.intern(part)
    if part is None or type(part) in (bool, int, float):
        return part
    raise TypeError(f"{where.removeprefix('.') or 'the state'} is a {type(part).__name__}, expected plain data")


def describe_newest(folder: Path, before: int | None = None) -> str:
    """Name the newest complete checkpoint of a run, as a sentence.

    Args:
        before: only consider earlier steps.
    """
    for step, path in sorted(steps(folder).items(), reverse=True):
        if (before is None or step < before) and (path / NAME).is_file():
            advice = "" if before else "; resume from it with --resume-from"  # that goes on from the newest one
            return f"The last good checkpoint is {folder.name}/{path.name}{advice}"
    return "No checkpoint of an earlier step is left" if before else "No checkpoint was written"
