"""What a checkpoint holds, in memory: tensors by group, and everything else as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from torch import Tensor

from rc1_lib.errors import RC1Error
from rc1_lib.training.checkpoint.trees import flatten, unflatten

_TREES = "trees"


class CheckpointError(RC1Error):
    """A checkpoint that is missing, altered, or does not fit what it is loaded into."""


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """Everything that training needs to go on as if it had never stopped.

    Attributes:
        tensors: group -> name -> tensor; a group becomes the file `<group>.safetensors`.
        values: what is no tensor, as JSON; `values["step"]` is the number of finished steps. Put nothing in that
            differs between two equal runs (times, host names), or equal checkpoints will have unequal fingerprints.
    """

    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        trees: Mapping[str, Any],
        values: Mapping[str, Any],
    ) -> Self:
        """A state from its parts.

        Args:
            step: finished steps.
            tensors: flat groups, for example `adapter` and `value_head`.
            trees: nested states, for example `optimizer`, `scheduler`, `scaler`, `rng`: whatever `flatten` takes.
            values: JSON, for example the KL coefficient, positions, the reference's SHA-256.

        Raises:
            TypeError: for a leaf in `trees` that is neither a tensor nor plain data.
        """
        assert not set(tensors) & set(trees), "a tree and a flat group of one name would share a file"
        groups = {name: dict(group) for name, group in tensors.items()}
        described = {}
        for name, tree in trees.items():
            leaves, described[name] = flatten(tree)
            if leaves:
                groups[name] = leaves
        return cls(groups, {**values, "step": step, _TREES: described})

    @property
    def step(self) -> int:
        """Finished steps."""
        step = self.values["step"]
        assert isinstance(step, int), f"the step is {step!r}"
        return step

    def tree(self, name: str) -> Any:
        """The nested state `name` as it was given to `build`.

        Raises:
            CheckpointError: when there is none.
        """
        known = self.values.get(_TREES, {})
        if name not in known:
            raise CheckpointError(
                f"the checkpoint of step {self.step} holds no state '{name}', it holds: "
                f"{', '.join(sorted(known)) or 'none'}; resume with the engine that wrote it"
            )
        return unflatten(known[name], self.tensors.get(name, {}))
