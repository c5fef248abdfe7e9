"""What differs between two checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rc1_lib.training.checkpoint.state import CheckpointState


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: where it is, and a phrase that says what is there on both sides."""

    where: str
    what: str


def diff_checkpoints(a: CheckpointState, b: CheckpointState, exact: bool) -> list[Difference]:
    """All differences between two loaded checkpoints, in a fixed order; empty when there is none.

    Args:
        a: one state.
        b: the other.
        exact: compare tensors bit for bit, dtypes included. Otherwise they are compared as numbers: a dtype is no
            difference, nor is the sign of a zero, and NaN equals NaN.
    """
    found = list(_values(a.values, b.values, ""))
    for group in sorted(a.tensors.keys() | b.tensors.keys()):
        if group not in a.tensors or group not in b.tensors:
            found.append(Difference(group, f"only in the {'first' if group in a.tensors else 'second'}"))
            continue
        found += _tensors(a.tensors[group], b.tensors[group], group, exact)
    return found


def _tensors(a: Mapping[str, Tensor], b: Mapping[str, Tensor], group: str, exact: bool) -> Iterator[Difference]:
    for name in sorted(a.keys() | b.keys()):
        where = f"{group}/{name}"
        if name not in a or name not in b:
            yield Difference(where, f"only in the {'first' if name in a else 'second'}")
        elif a[name].shape != b[name].shape:
            yield Difference(where, f"shape {tuple(a[name].shape)} and {tuple(b[name].shape)}")
        elif exact and a[name].dtype != b[name].dtype:
            yield Difference(where, f"dtype {a[name].dtype} and {b[name].dtype}")
        elif not (_same_bits(a[name], b[name]) if exact else _same_numbers(a[name], b[name])):
            yield Difference(where, _describe(a[name], b[name]))


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(_bytes(a), _bytes(b))


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    wide_a, wide_b = a.double(), b.double()
    return bool(((wide_a == wide_b) | (wide_a.isnan() & wide_b.isnan())).all())


def _describe(a: Tensor, b: Tensor) -> str:
    """How many numbers differ and by how much. Bits that differ in equal numbers (zeros, NaN) are called that."""
    gap = (a.double() - b.double()).abs()
    unequal = int((gap != 0).sum())
    if not unequal:
        return "equal numbers, other bits"
    return f"{unequal} of {gap.numel()} numbers differ, by {float(gap.nan_to_num(torch.inf).max()):.3g} at most"


def _values(a: Any, b: Any, path: str) -> Iterator[Difference]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            where = f"{path}.{key}" if path else f"state.json/{key}"
            if key not in a or key not in b:
                yield Difference(where, f"only in the {'first' if key in a else 'second'}")
            else:
                yield from _values(a[key], b[key], where)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _lists(a, b, path)
    elif type(a) is not type(b) or a != b:
        yield Difference(path, f"{_short(a)} and {_short(b)}")


def _lists(a: list[Any], b: list[Any], path: str) -> Iterator[Difference]:
    if len(a) == len(b) and all(isinstance(one, dict | list) for one in (*a, *b)):
        for place, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _values(left, right, f"{path}[{place}]")
        return
    unequal = [place for place, (left, right) in enumerate(zip(a, b, strict=False)) if left != right]
    shown = [f"{len(a)} and {len(b)} entries"] if len(a) != len(b) else []
    if unequal:
        first, of = unequal[0], min(len(a), len(b))
        shown.append(f"{len(unequal)} of {of} differ, first at [{first}]: {_short(a[first])} and {_short(b[first])}")
    if shown:
        yield Difference(path, "; ".join(shown))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
