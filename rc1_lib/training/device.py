"""Devices and precision of tensors. Tensors are moved only with `to_device`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rc1_lib.errors import ConfigError

ORDER = ("cuda", "mps", "cpu")
"""Order of preference if none is given."""

CPU_FLAGS = Path("/proc/cpuinfo")
"""Where Linux lists the CPU's features."""


class Precision(StrEnum):
    """Number format of a forward pass."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"

    @property
    def dtype(self) -> torch.dtype:
        """The corresponding type of torch."""
        return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[self.value]


def available(kind: str) -> bool:
    """Whether this machine has a device of that kind (`cuda`, `mps` or `cpu`).

    Raises:
        ConfigError: for any other kind.
    """
    match kind:
        case "cuda":
            return torch.cuda.is_available()
        case "mps":
            return torch.backends.mps.is_available()
        case "cpu":
            return True
    raise ConfigError(f"run.device_pref: found '{kind}', expected {', '.join(ORDER)}")


def get_device(preferred: Sequence[str] = ORDER) -> torch.device:
    """Return the first available device of `preferred`.

    Raises:
        ConfigError: if none is available.
    """
    for kind in preferred:
        if available(kind):
            return torch.device(kind)
    raise ConfigError(f"run.device_pref: this machine has none of {', '.join(preferred)}; add cpu")


def get_precision(device: torch.device, wanted: Precision) -> Precision:
    """Return the best available precision up to the wanted one: bf16, else fp16, else fp32.

    fp16 needs a gradient scaler, which exists only on CUDA and MPS. Only old hardware lacks bf16.
    """
    if wanted is Precision.BF16 and _has_bf16(device):
        return Precision.BF16
    if wanted is not Precision.FP32 and device.type in {"cuda", "mps"}:
        return Precision.FP16
    return Precision.FP32


def precision_of(device: torch.device, configured: str) -> Precision:
    """Return the precision that `training.precision` means on a device.

    Args:
        configured: `fp32`, `bf16`, or `auto`: bf16, but fp32 on a CPU that would have to emulate bf16.
    """
    if configured == "auto":
        configured = "fp32" if device.type == "cpu" and not _multiplies_bf16() else "bf16"
    return get_precision(device, Precision(configured))


def _multiplies_bf16() -> bool:
    """Whether the CPU has bf16 instructions. Emulated bf16 is slower than fp32."""
    try:
        words = set(CPU_FLAGS.read_text().split())
    except OSError:
        return False
    return not words.isdisjoint({"avx512_bf16", "amx_bf16"})


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "mps":
        return bool(torch.backends.mps.is_macos_or_newer(14, 0))
    return True


def to_device(value: Any, device: torch.device) -> Any:
    """Move a tensor, a module, or a dict, list or tuple of them to `device`; return anything else unchanged."""
    if isinstance(value, Tensor | nn.Module):
        return value.to(device)
    if isinstance(value, dict):
        return {key: to_device(part, device) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_device(part, device) for part in value)
    return value
