"""Values as bytes for another process: JSON, and the tensors' own bytes. Reading them runs no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rc1_lib.training.device import get_device, to_device

_TENSOR, _PAIRS = "tensor", "pairs"


def pack(value: Any, device: torch.device) -> Tensor:
    """Return a value as uint8 on a device.

    Args:
        value: plain values of JSON and tensors, in mappings, lists and tuples. Tuples come back as lists.
    """
    tensors: list[Tensor] = []
    plain = _plain(value, tensors)
    shapes = [[str(one.dtype).removeprefix("torch."), list(one.shape), one.device.type == "cpu"] for one in tensors]
    text = torch.frombuffer(bytearray(json.dumps([shapes, plain]).encode()), dtype=torch.uint8)
    parts = [torch.tensor([len(text)]), text, *tensors]
    return torch.cat([to_device(one.detach().contiguous().reshape(-1).view(torch.uint8), device) for one in parts])


def unpack(content: Tensor) -> Any:
    """Return the value, with its tensors on the CPU or on this process's device as they were on the sender's."""
    start = torch.int64.itemsize
    end = start + int(content[:start].cpu().view(torch.int64))
    shapes, plain = json.loads(bytes(content[start:end].cpu().numpy()))
    tensors = []
    for name, shape, on_cpu in shapes:
        dtype = getattr(torch, name)
        assert isinstance(dtype, torch.dtype), f"found the tensor type '{name}'"
        start, end = end, end + math.prod(shape) * dtype.itemsize
        part = content[start:end].clone().view(dtype).reshape(shape)
        tensors.append(to_device(part, torch.device("cpu") if on_cpu else get_device()))
    return _value(plain, tensors)


def _plain(value: Any, tensors: list[Tensor]) -> Any:
    """Replace tensors by their place in `tensors`, and mappings by their pairs: JSON's keys are only strings."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return {_TENSOR: len(tensors) - 1}
    if isinstance(value, Mapping):
        return {_PAIRS: [[key, _plain(one, tensors)] for key, one in value.items()]}
    return [_plain(one, tensors) for one in value] if isinstance(value, list | tuple) else value


def _value(plain: Any, tensors: list[Tensor]) -> Any:
    if isinstance(plain, dict):
        if _TENSOR in plain:
            return tensors[plain[_TENSOR]]
        return {key: _value(one, tensors) for key, one in plain[_PAIRS]}
    return [_value(one, tensors) for one in plain] if isinstance(plain, list) else plain
