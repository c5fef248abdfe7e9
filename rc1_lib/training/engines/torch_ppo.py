"""PPO on a causal model with an adapter and a value head: the engine `torch_ppo`, also called `trl_ppo`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch.optim import AdamW
from transformers import PreTrainedModel

from rc1_lib.training.api import Setup
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.policy import ValuedPolicy
from rc1_lib.training.ppo.update import PPOSettings, objective_metrics, ppo_update, targets_of
from rc1_lib.training.updates.batch import EpisodeBatch


class TorchPPO(PolicyEngine):
    """The engine `torch_ppo`."""

    policy: ValuedPolicy
    needs_states: ClassVar[bool] = True

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        config, ppo = setup.config, setup.config.training.ppo
        self.policy = ValuedPolicy(base, setup.model.lora, self.seed)
        self.optimizer = AdamW(
            [
                {"params": self.policy.adapter_parameters(), "lr": config.lr},
                {"params": list(self.policy.value_head.parameters()), "lr": ppo.value_lr},
            ],
            weight_decay=0.0,
        )
        self._settings = PPOSettings(config.training.update, ppo, config.clip, self.temperature)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `trajectories` and `scores`; `step` counts the finished ones."""
        rate = self.optimizer.param_groups[1]["lr"]
        return {**super().train_step(batch), "lr/value": rate}

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        return ppo_update(
            self.policy,
            batch,
            self.optimizer,
            self._settings,
            kl_coef=kl_coef,
            iteration=iteration,
            generator=self._dealer,
            scaler=self._scaler,
            shards=self._shards,
        )

    def _look(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        targets = targets_of(self.policy, batch, self._settings, kl_coef)
        return objective_metrics(batch, targets, kl_coef)

    def state_dict(self) -> dict[str, Any]:
        """That of every such engine, and `value_head`."""
        head = {name: value.detach().clone() for name, value in self.policy.value_head.state_dict().items()}
        return {**super().state_dict(), "value_head": head}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        self.policy.value_head.load_state_dict(state["value_head"])
