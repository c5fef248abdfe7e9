"""Custom engines that tests register: one plays episodes, one only says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rc1_lib.training.api import Engine, Setup
from rc1_lib.training.engines.torch_ppo import TorchPPO


class KeepsItsStart(TorchPPO):
    """PPO that ignores checkpoints: it always plays with the policy that it was set up with."""

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        assert adapter


class Mute(Engine):
    """Declares that it learns from episodes, but has no policy to play them with."""

    def setup(self, setup: Setup) -> None: ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        return {"loss": 0.0}

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        return {"loss": 0.0, "tokens": 1.0}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...
