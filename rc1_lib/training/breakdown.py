"""What ends a training from outside, by its name: the disk is full, or memory is. And which checkpoint is left."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError

from rc1_lib.training.checkpoint.manifest import NAME
from rc1_lib.training.checkpoint.names import steps
from rc1_lib.training.diverged import CollapsedError, DivergedError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OS_ERROR = re.compile(r"os error (\d+)")
"""How safetensors tells of an error of the system, which it raises as one of its own."""
_NO_MEMORY = "can't allocate memory"
"""What torch says on a CPU, in an error of no kind of its own."""
_RAISED = (MemoryError, RuntimeError, OSError, SafetensorError)
"""What they are raised as."""
_ADVICE = {
    "the disk is full": "free space, or save less often (training.checkpoints.every_steps)",
    "memory is full": "lower micro_tokens of the update, training.rollout.rows or training.rollout.prefill_tokens",
}


class BreakdownError(Exception):
    """A fault of the machine; what was saved before it is whole."""


def shortage(error: BaseException) -> str:
    """What has run out; "" where it is something else."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return "memory is full"
    if isinstance(error, RuntimeError) and _NO_MEMORY in str(error):
        return "memory is full"
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, SafetensorError) and (found := _OS_ERROR.search(str(error))):
        number = int(found[1])
    return "the disk is full" if number in _FULL else ""


@contextmanager
def naming_breakdowns(folder: Path) -> Iterator[None]:
    """Say what ended a training, what to do, and what is left of it in `folder`.

    Raises:
        BreakdownError: when the disk or memory is full.
        DivergedError: as in the block, with the last good checkpoint named.
    """
    try:
        yield
    except CollapsedError as error:
        raise CollapsedError(f"{error}. {left_in(folder, error.since)}", error.since) from error
    except DivergedError as error:
        raise DivergedError(f"{error}. {left_in(folder)}") from error
    except _RAISED as error:
        if not (what := shortage(error)):
            raise
        cause = str(error).partition("\n")[0]
        raise BreakdownError(f"{what} ({cause}): {_ADVICE[what]}. {left_in(folder)}") from error


def left_in(folder: Path, before: int | None = None) -> str:
    """The newest whole checkpoint, of a step before `before` where one is given, as a sentence."""
    whole = {step: path for step, path in steps(folder).items() if (path / NAME).is_file()}
    there = [step for step in whole if before is None or step < before]
    if not there:
        return "No checkpoint was written before"
    return f"The last good checkpoint is {folder.name}/{whole[max(there)].name}; --resume-from goes on there"
