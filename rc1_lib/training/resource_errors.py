"""Report a full disk or memory as one sentence: what to do, and what was saved. The error may come from any library."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rc1_lib.errors import RC1Error
from rc1_lib.training.diverged import DivergedError

DISK, MEMORY = "the disk is full", "memory is full"

_NUMBERS = {errno.ENOSPC: DISK, errno.EDQUOT: DISK, errno.EFBIG: DISK, errno.ENOMEM: MEMORY}
_OS_ERROR = re.compile(r"os error (\d+)")
"""Safetensors reports an error of the operating system in this form, inside its own exception."""
_NO_MEMORY = re.compile(r"can(?:not|'t) allocate memory|DefaultCPUAllocator|out of memory", re.IGNORECASE)
"""Messages of torch that have no exception class of their own: CPU allocator, memory-mapped files, MPS."""
_ROOM = "free space, or name another --workspace"


class LostError(RC1Error):
    """A process that shares a step is gone, or silent.

    Attributes:
        lacking: what it ran out of, as `shortage` returns it; "" if not known.
    """

    def __init__(self, text: str, lacking: str = "") -> None:
        super().__init__(text)
        self.lacking = lacking


def shortage(error: BaseException) -> str:
    """Return what has run out, `DISK` or `MEMORY`; "" for any other error."""
    if isinstance(error, LostError):
        return error.lacking
    if isinstance(error, MemoryError) or _is(error, "torch", "OutOfMemoryError"):
        return MEMORY
    if isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)):
        return MEMORY
    number = error.errno if isinstance(error, OSError) else None
    if _is(error, "safetensors", "SafetensorError") and (found := _OS_ERROR.search(str(error))):
        number = int(found[1])
    return "" if number is None else _NUMBERS.get(number, "")


def _is(error: BaseException, library: str, name: str) -> bool:
    """Whether an error has a library's class. A library that was not imported cannot have raised it."""
    loaded = sys.modules.get(library)
    return loaded is not None and isinstance(error, getattr(loaded, name))


class BreakdownError(Exception):
    """The machine ran out of disk or memory. What was saved before is intact."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """What to do about a shortage, naming the keys of the configuration in use.

    Attributes:
        disk: if the disk is full.
        memory: if memory is full.
    """

    disk: str
    memory: str

    def against(self, what: str) -> str:
        """Return what to do about `DISK` or `MEMORY`."""
        return {DISK: self.disk, MEMORY: self.memory}[what]


WHILE_LEARNING = Remedies(
    disk="free space, or save less often (training.checkpoints.every_steps)",
    memory="free memory, or on a CPU lower training.processes, and start the same command again; a lower "
    "training.update.micro_tokens or training.rollout.rows makes it another run, which starts from the beginning",
)
WHILE_PLAYING = Remedies(
    disk=_ROOM,
    memory="free memory, or on a CPU lower training.processes; a lower training.rollout.rows makes "
    "it another run, which starts from the beginning",
)
"""If a run's policy only answers prompts."""
WARMING_UP = Remedies(
    disk=_ROOM,
    memory="free memory, lower training.warm_start.batch_size, set training.warm_start.steps to 0 (training then "
    "starts from the base itself), or use a smaller base_model",
)
"""For the warm start, which trains all weights of the base."""
FROM_ROWS = Remedies(
    disk="free space, save less often (run.save_steps) or keep fewer checkpoints (run.keep_last)",
    memory="free memory and resume; a lower data.batch_size or data.max_length, "
    "model.gradient_checkpointing or model.quantization: nf4 makes it another run, which starts from the beginning",
)
"""For the small local configuration."""


Left = str | Callable[[], str]
"""What was saved: a fixed sentence, or a function for what was saved until now."""


@contextmanager
def naming_breakdowns(left: Left, remedies: Remedies) -> Iterator[None]:
    """Turn a shortage in the block into an error that says what to do and what was saved.

    Raises:
        BreakdownError: if the disk or memory is full, here or in a worker process.
        DivergedError: from the block, with the last good checkpoint added to its message.
    """
    try:
        yield
    except DivergedError as error:
        raise DivergedError(f"{error}. {_words(left)}") from error
    except Exception as error:
        if not (what := shortage(error)):
            raise
        cause = str(error).partition("\n")[0] or type(error).__name__
        raise BreakdownError(f"{what} ({cause}): {remedies.against(what)}. {_words(left)}") from error


def _words(left: Left) -> str:
    return left if isinstance(left, str) else left()
