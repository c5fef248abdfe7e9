"""Where tensors live and how precise they are; `to_device` is the one way in which they move."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rc1_lib.errors import ConfigError

ORDER = ("cuda", "mps", "cpu")
"""What is taken where nothing is preferred."""

CPU_FLAGS = Path("/proc/cpuinfo")
"""Where Linux lists what a CPU can do."""


class Precision(StrEnum):
    """The type that a forward pass computes in."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"

    @property
    def dtype(self) -> torch.dtype:
        """As torch calls it."""
        return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[self.value]


def available(kind: str) -> bool:
    """Whether this machine has a device of that kind (`cuda`, `mps` or `cpu`).

    Raises:
        ConfigError: for another kind.
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
    """The first of `preferred` that is there.

    Raises:
        ConfigError: when none is.
    """
    for kind in preferred:
        if available(kind):
            return torch.device(kind)
    raise ConfigError(f"run.device_pref: this machine has none of {', '.join(preferred)}; add cpu")


def get_precision(device: torch.device, wanted: Precision) -> Precision:
    """The best precision not above the wanted one: bf16, else fp16, else fp32.

    fp16 needs a loss scaler, which there is on CUDA and MPS only; bf16 is computed everywhere but on old hardware.
    """
    if wanted is Precision.BF16 and _has_bf16(device):
        return Precision.BF16
    if wanted is not Precision.FP32 and device.type in {"cuda", "mps"}:
        return Precision.FP16
    return Precision.FP32


def precision_of(device: torch.device, configured: str) -> Precision:
    """What `training.precision` comes to on a device.

    Args:
        device: where the policy is.
        configured: `fp32`, `bf16`, or `auto`: bf16, but fp32 on a CPU that has to emulate it.
    """
    if configured == "auto":
        configured = "fp32" if device.type == "cpu" and not _multiplies_bf16() else "bf16"
    return get_precision(device, Precision(configured))


def _multiplies_bf16() -> bool:
    """Whether this machine's CPU has instructions for products in bf16; emulated they are slower than fp32."""
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
    """`value` on `device`: a tensor, a module, or a mapping, list or tuple of such; anything else is left as it is."""
    if isinstance(value, Tensor | nn.Module):
        return value.to(device)
    if isinstance(value, dict):
        return {key: to_device(part, device) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_device(part, device) for part in value)
    return value
