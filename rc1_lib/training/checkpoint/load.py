"""Reading a checkpoint: every byte is checked before a tensor is made of it, and nothing is ever unpickled."""

from __future__ import annotations

from pathlib import Path

import orjson
from safetensors import SafetensorError
from safetensors.torch import load

from rc1_lib.training.checkpoint.manifest import read_verified
from rc1_lib.training.checkpoint.names import settle, step_of
from rc1_lib.training.checkpoint.save import STATE
from rc1_lib.training.checkpoint.state import CheckpointError, CheckpointState

_SUFFIX = ".safetensors"


def load_checkpoint(path: Path, expected: str | None = None) -> CheckpointState:
    """Read the checkpoint in `path`; tensors lie on the CPU, with the dtypes that they were saved with.

    Args:
        path: its folder, or a link to it.
        expected: the fingerprint that it has to have (see `fingerprint`), where the caller knows it.

    Raises:
        CheckpointError: naming the file that is missing, altered, foreign or unreadable, and what to do.
    """
    settle(path.parent)
    contents = read_verified(path, expected)
    if STATE not in contents:
        raise CheckpointError(f"{path / STATE}: the manifest does not name it; this is no checkpoint of RC1")
    try:
        values = orjson.loads(contents.pop(STATE))
        assert isinstance(values["step"], int)
    except (ValueError, KeyError, TypeError, AssertionError):
        raise CheckpointError(
            f"{path / STATE}: is no state of a training (a JSON object with its step); it was altered, together with "
            f"the manifest: name another checkpoint"
        ) from None
    groups = {}
    for name, content in contents.items():
        if not name.endswith(_SUFFIX):
            raise CheckpointError(f"{path / name}: is not a safetensors file; RC1 reads nothing else")
        try:
            groups[name.removesuffix(_SUFFIX)] = load(content)
        except SafetensorError as error:
            raise CheckpointError(f"{path / name}: cannot be read as safetensors ({error})") from None
    state = CheckpointState(groups, values)
    named = step_of(path.resolve())
    if named is not None and named != state.step:
        raise CheckpointError(
            f"{path}: holds step {state.step}, but its name says step {named}; it was renamed: name it back"
        )
    return state
