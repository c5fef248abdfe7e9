"""The contents of a checkpoint in memory, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rc1_lib.training.checkpoint.atomic_folder import CheckpointError


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """Everything that training needs to continue as if it had never stopped.

    Attributes:
        tensors: group -> name -> tensor. A group becomes the file `<group>.safetensors`, for other programs too.
        values: JSON; `values["step"]` is the number of finished steps. Values that differ between equal runs (times,
            host names) must not be here, or equal checkpoints would have different fingerprints.
        nested: name -> nested state, for example of the optimizer: tensors and plain data.
    """

    tensors: dict[str, dict[str, Tensor]]
    values: dict[str, Any]
    nested: dict[str, Any] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Number of finished steps."""
        step = self.values["step"]
        assert isinstance(step, int), f"the step is {step!r}"
        return step

    def part(self, name: str) -> Any:
        """Return the nested state with this name.

        Raises:
            CheckpointError: if there is none.
        """
        if name not in self.nested:
            raise CheckpointError(
                f"the checkpoint of step {self.step} has no state '{name}', only "
                f"{', '.join(sorted(self.nested)) or 'none'}; resume with the engine that wrote it"
            )
        return self.nested[name]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two checkpoints: where it is, and the values of both."""

    where: str
    what: str


def diff_checkpoints(a: CheckpointState, b: CheckpointState, exact: bool) -> list[Difference]:
    """List all differences between two checkpoints in a fixed order.

    Args:
        a: one state.
        b: the other.
        exact: compare tensors bit for bit, including dtypes. Otherwise compare their numbers: dtypes and the sign of
            zero are ignored, and NaN equals NaN.
    """
    values = _mappings(a.values, b.values, "state.json/", ".", exact)
    tensors = _mappings(a.tensors, b.tensors, "", "/", exact)
    return [*values, *tensors, *_mappings(a.nested, b.nested, "", "/", exact)]


def _between(a: Any, b: Any, where: str, exact: bool, joint: str = ".") -> Iterator[Difference]:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        yield from _tensors(a, b, where, exact)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        yield from _mappings(a, b, f"{where}{joint}", ".", exact)
    elif isinstance(a, list | tuple) and type(a) is type(b):
        yield from _lists(a, b, where, exact)
    elif type(a) is not type(b) or not (a == b or (a != a and b != b)):
        yield Difference(where, f"{_short(a)} and {_short(b)}")


def _mappings(a: Mapping[Any, Any], b: Mapping[Any, Any], before: str, joint: str, exact: bool) -> Iterator[Difference]:
    for key in sorted(a.keys() | b.keys(), key=str):
        if key in a and key in b:
            yield from _between(a[key], b[key], f"{before}{key}", exact, joint)
        else:
            yield Difference(f"{before}{key}", f"only in the {'first' if key in a else 'second'}")


def _lists(a: Any, b: Any, where: str, exact: bool) -> Iterator[Difference]:
    if len(a) == len(b) and all(isinstance(one, Mapping | list | tuple | Tensor) for one in (*a, *b)):
        for place, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _between(left, right, f"{where}[{place}]", exact)
        return
    unequal = [place for place, (left, right) in enumerate(zip(a, b, strict=False)) if left != right]
    shown = [f"{len(a)} and {len(b)} entries"] if len(a) != len(b) else []
    if unequal:
        first, of = unequal[0], min(len(a), len(b))
        shown.append(f"{len(unequal)} of {of} differ, first at [{first}]: {_short(a[first])} and {_short(b[first])}")
    if shown:
        yield Difference(where, "; ".join(shown))


def _tensors(a: Tensor, b: Tensor, where: str, exact: bool) -> Iterator[Difference]:
    if a.shape != b.shape:
        yield Difference(where, f"shape {tuple(a.shape)} and {tuple(b.shape)}")
    elif exact and a.dtype != b.dtype:
        yield Difference(where, f"dtype {a.dtype} and {b.dtype}")
    elif not (_same_bits(a, b) if exact else _same_numbers(a, b)):
        yield Difference(where, _gap(a, b))


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(*(one.contiguous().reshape(-1).view(torch.uint8) for one in (a, b)))


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    wide_a, wide_b = a.double(), b.double()
    return bool(((wide_a == wide_b) | (wide_a.isnan() & wide_b.isnan())).all())


def _gap(a: Tensor, b: Tensor) -> str:
    """Describe how many numbers differ and by how much. Zeros and NaN may be equal numbers with other bits."""
    gap = (a.double() - b.double()).abs()
    unequal = int((gap != 0).sum())
    if not unequal:
        return "equal numbers, other bits"
    return f"{unequal} of {gap.numel()} numbers differ, by {float(gap.nan_to_num(torch.inf).max()):.3g} at most"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
