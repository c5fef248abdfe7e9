"""What is trained of a model in supervised training: its adapter, or all of it; as a part of an engine's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peft import get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor, nn

from rc1_lib.errors import ConfigError


class TrainedWeights:
    """The trained weights of a model.

    Attributes:
        name: of the part of the state: `adapter` or `model`.
    """

    def __init__(self, model: nn.Module, *, adapted: bool) -> None:
        """Of a model of peft where `adapted`, else of a plain one."""
        self._model, self._adapted = model, adapted
        self.name = "adapter" if adapted else "model"

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What the optimizer is over."""
        return [value for value in self._model.parameters() if value.requires_grad]

    def state(self) -> dict[str, Tensor]:
        """The weights by name."""
        if self._adapted:
            return dict(get_peft_model_state_dict(self._model))
        return {name: value.detach() for name, value in self._model.named_parameters()}

    def load(self, weights: Mapping[str, Any]) -> None:
        """Put back what `state` gave.

        Raises:
            ConfigError: when the weights are those of another model or adapter.
        """
        shapes = {name: tuple(value.shape) for name, value in weights.items()}
        wanted = {name: tuple(value.shape) for name, value in self.state().items()}
        if shapes != wanted:
            odd = sorted(set(shapes.items()) ^ set(wanted.items()))[0]
            raise ConfigError(f"model: the checkpoint's weights are of another model, first at {odd}; give its base")
        if self._adapted:
            set_peft_model_state_dict(self._model, dict(weights))
        else:
            self._model.load_state_dict(weights, strict=False)
