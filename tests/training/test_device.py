"""Devices and precisions in the documented order, and one function that moves tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rc1_lib.errors import ConfigError
from rc1_lib.training import device
from rc1_lib.training.device import Precision, get_device, get_precision, precision_of, to_device


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Kinds of device that torch reports as available."""
    kinds: set[str] = set()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in kinds)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in kinds)
    return kinds


def test_device_order_is_cuda_mps_cpu(available: set[str]) -> None:
    assert get_device().type == "cpu"
    available.add("mps")
    assert get_device().type == "mps"
    available.add("cuda")
    assert get_device().type == "cuda"


def test_missing_or_unknown_preferred_device_is_rejected(available: set[str]) -> None:
    with pytest.raises(ConfigError, match=r"run\.device_pref: .*cuda, mps; .*cpu"):
        get_device(["cuda", "mps"])
    with pytest.raises(ConfigError, match=r"run\.device_pref: .*'tpu', .*cuda, mps, cpu"):
        get_device(["tpu"])


@pytest.mark.parametrize(
    ("kind", "bf16", "wanted", "got"),
    [
        ("cuda", True, "bf16", "bf16"),
        ("cuda", False, "bf16", "fp16"),
        ("cpu", True, "bf16", "bf16"),
        ("cpu", True, "fp16", "fp32"),  # no loss scaler available
    ],
)
def test_precision_falls_back_from_bf16_to_fp16_to_fp32(
    kind: str, bf16: bool, wanted: str, got: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_has_bf16", lambda _: bf16)
    assert get_precision(torch.device(kind), Precision(wanted)) is Precision(got)


def test_to_device_moves_nested_containers_and_modules() -> None:
    batch = {"ids": torch.zeros(2), "parts": [torch.ones(1), (torch.ones(1), "text")], "meta": {"n": 3}}
    moved = to_device(batch, torch.device("meta"))
    assert moved["ids"].device.type == "meta"
    assert moved["parts"][0].device.type == moved["parts"][1][0].device.type == "meta"
    assert (moved["parts"][1][1], moved["meta"]) == ("text", {"n": 3})
    assert isinstance(moved["parts"][1], tuple)
    assert to_device(torch.nn.Linear(1, 1), torch.device("meta")).weight.device.type == "meta"


@pytest.mark.parametrize(
    ("flags", "configured", "got"),
    [
        ("fpu avx512f avx512_bf16", "auto", "bf16"),
        ("fpu avx512f", "auto", "fp32"),
        ("fpu avx512_bf16", "fp32", "fp32"),
    ],
)
def test_auto_precision_is_bf16_if_the_cpu_multiplies_it(
    flags: str, configured: str, got: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    monkeypatch.setattr(device, "CPU_FLAGS", tmp_path / "cpuinfo")
    assert precision_of(torch.device("cpu"), configured) is Precision(got)
