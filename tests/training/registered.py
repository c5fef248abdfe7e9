"""Custom engines that tests register: one learns from rows, two play episodes or should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rc1_lib.training.api import Engine, Setup
from rc1_lib.training.engines.torch_ppo import TorchPPO


class TokenCounts(Engine):
    """A unigram model, fitted by gradient descent."""

    def setup(self, setup: Setup) -> None:
        self.logits = torch.nn.Parameter(torch.zeros(300))
        self.optimizer: torch.optim.Optimizer = torch.optim.SGD([self.logits], lr=setup.lr)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        loss = self._loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": float(loss.detach()), "lr": self.optimizer.param_groups[0]["lr"]}

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        return {"loss": float(self._loss(batch).detach()), "tokens": float(len(self._learned(batch)))}

    def state_dict(self) -> dict[str, Any]:
        return {"unigrams": {"logits": self.logits.detach()}, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.logits.copy_(state["unigrams"]["logits"])
        self.optimizer.load_state_dict(state["optimizer"])

    def _loss(self, batch: dict[str, Any]) -> Tensor:
        return -self.logits.log_softmax(0)[self._learned(batch)].mean()

    def _learned(self, batch: dict[str, Any]) -> list[int]:
        return [
            token for one in batch["demonstrations"] for token, own in zip(one.ids, one.action_mask, strict=True) if own
        ]


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
