"""Imitates tensors of Apple's MPS, which has no float64."""

from __future__ import annotations

from typing import Any

from torch import Tensor


class NoFloat64(Tensor):
    """A tensor that must move to the CPU before it becomes float64; so must all that is computed from it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.cpu:
            return args[0].as_subclass(Tensor)
        if func is Tensor.double:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
        return super().__torch_function__(func, types, args, kwargs)
