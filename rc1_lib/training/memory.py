"""How much memory this process took at most."""

from __future__ import annotations

import resource
import sys

import torch


def used_mb() -> float:
    """Peak memory in MiB: the accelerator's where one is used, else the process's own (resident)."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    if torch.backends.mps.is_available():
        return torch.mps.driver_allocated_memory() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, KiB elsewhere
