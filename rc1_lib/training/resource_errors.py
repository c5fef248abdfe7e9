"""A full disk and a full memory, whoever raises them, as one sentence that says what to do and what is left."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rc1_lib.training.diverged import DivergedError

DISK, MEMORY = "the disk is full", "memory is full"

_NUMBERS = {errno.ENOSPC: DISK, errno.EDQUOT: DISK, errno.EFBIG: DISK, errno.ENOMEM: MEMORY}
_OS_ERROR = re.compile(r"os error (\d+)")
"""How safetensors reports an error of the system, which it raises as one of its own."""
_NO_MEMORY = re.compile(r"can(?:not|'t) allocate memory|DefaultCPUAllocator|out of memory", re.IGNORECASE)
"""What torch says if it has no error of its own for it: its allocator on a CPU, a file that it maps, MPS."""
_ROOM = "free space, or name another --workspace"


class WorkerShortage(Exception):
    """An error of a worker process that may have come of a shortage there.

    Attributes:
        lacking: what had run out, in the words of `shortage`; "" if something else failed.
    """

    def __init__(self, text: str, lacking: str = "") -> None:
        super().__init__(text)
        self.lacking = lacking


def shortage(error: BaseException) -> str:
    """What has run out, `DISK` or `MEMORY`; "" if it is something else."""
    if isinstance(error, WorkerShortage):
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
    """Whether an error is a library's own: of one that was never imported none comes, and it may not be installed."""
    loaded = sys.modules.get(library)
    return loaded is not None and isinstance(error, getattr(loaded, name))


class BreakdownError(Exception):
    """A fault of the machine; what was saved before it is whole."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """What to do where something has run out, by the keys of the configuration that is in use.

    Attributes:
        disk: where the disk is full.
        memory: where memory is.
    """

    disk: str
    memory: str

    def against(self, what: str) -> str:
        """What to do against a shortage."""
        return {DISK: self.disk, MEMORY: self.memory}[what]


WHILE_LEARNING = Remedies(
    disk="free space, or save less often (training.checkpoints.every_steps)",
    memory="free memory, or on a CPU lower training.processes, and it goes on; a lower training.update.micro_tokens, "
    "training.rollout.rows or training.rollout.prefill_tokens makes it another run, which starts from the beginning",
)
WHILE_PLAYING = Remedies(
    disk=_ROOM,
    memory="free memory, or on a CPU lower training.processes; a lower training.rollout.rows or "
    "training.rollout.prefill_tokens makes it another run, which starts from the beginning",
)
"""For a policy of a run that answers prompts, and learns nothing."""
WARMING_UP = Remedies(
    disk=_ROOM,
    memory="free memory, lower training.warm_start.batch_size, set training.warm_start.steps to 0 (training then "
    "starts from the base itself), or take a smaller base_model",
)
"""For the warm start, which trains all weights of the base."""
FROM_ROWS = Remedies(
    disk="free space, save less often (run.save_steps) or keep fewer checkpoints (run.keep_last)",
    memory="free memory, and it goes on; a lower data.batch_size or data.max_length, model.gradient_checkpointing or "
    "model.quantization: nf4 makes it another run, which starts from the beginning",
)
"""For the small local configuration."""


Left = str | Callable[[], str]
"""What is left, in words: always the same, or of what was saved until now."""


@contextmanager
def naming_breakdowns(left: Left, remedies: Remedies) -> Iterator[None]:
    """Say what ended the block, what to do, and what is left.

    Args:
        left: what is left.
        remedies: what to do if something has run out.

    Raises:
        BreakdownError: when the disk or memory is full, here or in a process that shares the work.
        DivergedError: as in the block, with the last good checkpoint named.
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
