"""Which errors say that a disk or memory is full, whoever raises them."""

from __future__ import annotations

import errno
import re

import torch
from safetensors import SafetensorError

DISK, MEMORY = "the disk is full", "memory is full"

_NUMBERS = {errno.ENOSPC: DISK, errno.EDQUOT: DISK, errno.EFBIG: DISK, errno.ENOMEM: MEMORY}
_OS_ERROR = re.compile(r"os error (\d+)")
"""How safetensors tells of an error of the system, which it raises as one of its own."""
_NO_MEMORY = re.compile(r"can(?:not|'t) allocate memory|DefaultCPUAllocator|out of memory", re.IGNORECASE)
"""What torch says where it has no error of its own for it: its allocator on a CPU, a file that it maps, MPS."""


class WorkerShortage(Exception):
    """An error of a worker process that may have come of a shortage there.

    Attributes:
        lacking: what had run out, in the words of `shortage`; "" where something else failed.
    """

    lacking: str


def shortage(error: BaseException) -> str:
    """What has run out, `DISK` or `MEMORY`; "" where it is something else."""
    if isinstance(error, WorkerShortage):
        return error.lacking
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return MEMORY
    if isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)):
        return MEMORY
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, SafetensorError) and (found := _OS_ERROR.search(str(error))):
        number = int(found[1])
    return "" if number is None else _NUMBERS.get(number, "")
