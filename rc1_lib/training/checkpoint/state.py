"""The contents of a checkpoint in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
