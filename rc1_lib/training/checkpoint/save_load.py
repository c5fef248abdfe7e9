"""Writing and reading a checkpoint: a folder that appears whole, then the link `latest`, then a line in the ledger.

Named tensors are safetensors, facts are JSON, and nested states (optimizer, random numbers, callbacks) are one file of
torch's, which is read with `weights_only`: nothing of a checkpoint is ever run.
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
from rc1_lib.training.checkpoint.ledger import check_entered, record_all
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
        TypeError: for a nested state that holds something other than tensors and plain data.
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
    """Set the link and the ledger, if a kill came after the checkpoint of `step` was in its place and before these.

    For a caller that finds that checkpoint whole and so saves nothing. A link to a later step stays.

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
        newest = (folder / LATEST).resolve()
        found = step_of(newest) if (newest / NAME).is_file() else None
        if found is None or found < step:
            atomic_folder.point(folder / LATEST, target.name)
        record_all(folder, ledger)


def load_checkpoint(path: Path, expected: str | None = None) -> CheckpointState:
    """Read the checkpoint in `path`, every byte checked first; tensors lie on the CPU, with the dtypes they had.

    Args:
        path: its folder, or a link to it.
        expected: the fingerprint that it has to have (see `fingerprint`), where the caller knows it.

    Raises:
        CheckpointError: naming the file that is missing, altered, foreign or unreadable, and what to do.
    """
    settle(path.parent)
    contents = read_verified(path, expected)
    if missing := sorted({STATE, NESTED} - contents.keys()):
        raise CheckpointError(f"{path / missing[0]}: the manifest does not name it; this is no checkpoint of RC1")
    try:
        values = orjson.loads(contents.pop(STATE))
        assert isinstance(values["step"], int)
    except (ValueError, KeyError, TypeError, AssertionError):
        raise CheckpointError(
            f"{path / STATE}: is no state of a training (a JSON object with its step); it was altered, together with "
            f"the manifest: name another checkpoint"
        ) from None
    try:
        nested = torch.load(io.BytesIO(contents.pop(NESTED)), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"{path / NESTED}: cannot be read as weights alone ({type(error).__name__})") from None
    groups = {}
    for name, content in contents.items():
        if not name.endswith(_SUFFIX):
            raise CheckpointError(f"{path / name}: is not a safetensors file; RC1 reads nothing else")
        try:
            groups[name.removesuffix(_SUFFIX)] = load(content)
        except SafetensorError as error:
            raise CheckpointError(f"{path / name}: cannot be read as safetensors ({error})") from None
    state = CheckpointState(groups, values, nested)
    named = step_of(path.resolve())
    if named is not None and named != state.step:
        raise CheckpointError(
            f"{path}: holds step {state.step}, but its name says step {named}; it was renamed: name it back"
        )
    return state


def load_to_resume(path: Path, ledger: Path) -> CheckpointState:
    """As `load_checkpoint`, for training to go on from.

    Args:
        path: its folder, or a link to it.
        ledger: `reports/ckpt_manifest.jsonl`, which knows what was written there.

    Raises:
        CheckpointError: also when it was put in the place of another one, or when a number in it is not finite.
    """
    state = load_checkpoint(path)
    check_entered(path, ledger)
    for fault in not_finite(state):
        raise CheckpointError(
            f"{path}: {fault}; whatever is learned from there is lost. Remove this checkpoint, and training goes on "
            f"from the one before it; where that ends likewise, lower the learning rate"
        )
    return state


def not_finite(state: CheckpointState) -> Iterator[str]:
    """What holds a NaN or an infinity: the file, the tensor, and how many of its numbers."""
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
        assert _GROUP.fullmatch(group), f"a group's name becomes a file's: {group!r}"
        save_file({name: _alone(tensor) for name, tensor in tensors.items()}, folder / f"{group}{_SUFFIX}")
    content = orjson.dumps(state.values, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    # orjson writes NaN as null and tuples as lists: what would come back otherwise than it went in is refused here.
    assert orjson.loads(content) == state.values, "values of a checkpoint have to survive JSON; use `nested` otherwise"
    (folder / STATE).write_bytes(content + b"\n")
    # In memory first: torch writes a file's own name into it, and reports a full disk as a fault of its own.
    stream = io.BytesIO()
    torch.save(_plain(state.nested, ""), stream)
    (folder / NESTED).write_bytes(stream.getvalue())
    write_manifest(folder, state.step)


def _alone(tensor: Tensor) -> Tensor:
    """A copy on the CPU that shares memory with no other: safetensors refuses that, and torch would save all of it."""
    return tensor.detach().cpu().contiguous().clone()


def _plain(part: Any, where: str) -> Any:
    """The same values as plain types, equal strings as one object: so equal states are pickled to equal bytes."""
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


def left_in(folder: Path, before: int | None = None) -> str:
    """The newest whole checkpoint of a run, as a sentence.

    Args:
        folder: of its checkpoints.
        before: a step that it has to come before.
    """
    for step, path in sorted(steps(folder).items(), reverse=True):
        if (before is None or step < before) and (path / NAME).is_file():
            return f"The last good checkpoint is {folder.name}/{path.name}; --resume-from goes on there"
    return "No checkpoint was written before"
