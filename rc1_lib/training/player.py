"""What the strategy `ppo` and the evaluation need of an engine: a policy that plays episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor
from transformers import PreTrainedModel

from rc1_lib.training.play import Playground


@runtime_checkable
class Player(Protocol):
    """An engine, set up, whose policy can play episodes.

    Attributes:
        playground: plays rows with a model, and says what each episode was worth.
        seed: of the run; with step and episode it decides what is sampled.
        temperature: that episodes are sampled at.
    """

    playground: Playground
    seed: int
    temperature: float

    @property
    def causal(self) -> PreTrainedModel:
        """The model that is sampled from; before anything was learned or loaded, it is the base that was set up."""
        ...

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on: the part `adapter` of the engine's state, out of a checkpoint.

        Raises:
            RC1Error: when it does not fit the model.
        """
        ...
