"""Peak memory of this process, free memory, and processes that the kernel killed for memory."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_MEMINFO = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
_STAT = Path("/sys/fs/cgroup/memory.stat")
_EVENTS, _VMSTAT = Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat")


def used_mb() -> float:
    """Return the peak memory in MiB: of the accelerator if one is used, or else the process's resident memory."""
    import torch  # here, because what the kernel says needs no torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    if torch.backends.mps.is_available():
        return torch.mps.driver_allocated_memory() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes on macOS, KiB elsewhere


def free_bytes(device: torch.device) -> int | None:
    """Return how much memory can still be allocated on a device; None if unknown.

    On a CPU it is what the kernel calls available, but no more than a container's limit allows. File caches that can be
    dropped count as free in both.
    """
    import torch

    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory())
    if not _MEMINFO.exists():
        return None
    available = _entry(_MEMINFO, "MemAvailable:") * 2**10
    bound = _LIMIT.read_text().strip() if _LIMIT.exists() else "max"
    if bound == "max":
        return available
    return min(available, int(bound) - int(_USED.read_text()) + _entry(_STAT, "inactive_file"))


def oom_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory, in this container and on the machine.

    It never decreases. It is 0 if the kernel does not count them.
    """
    return sum(_entry(path, "oom_kill", 0) for path in (_EVENTS, _VMSTAT) if path.exists())


def _entry(path: Path, name: str, default: int | None = None) -> int:
    """Return the number after `name` in a file with such lines."""
    numbers = (int(line.split()[1]) for line in path.read_text().splitlines() if line.split()[0] == name)
    return next(numbers) if default is None else next(numbers, default)
