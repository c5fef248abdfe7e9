"""GRPO on a causal model with an adapter and no value head: the engine `torch_grpo`."""

from __future__ import annotations

from transformers import PreTrainedModel

from rc1_lib.training.api import Setup
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.grpo import GRPOSettings, grpo_update
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.forward import reference_logprobs
from rc1_lib.training.updates.metrics import episode_metrics


class TorchGRPO(PolicyEngine):
    """The engine `torch_grpo`; what it learns from are groups of takes (strategy `groups`)."""

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        config = setup.config
        self._train_adapter(base, setup)
        update, grpo, most_tokens = config.training.update, config.training.grpo, config.training.limits.tokens
        self._settings = GRPOSettings(update, grpo, config.clip, self.temperature, most_tokens)

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        return grpo_update(
            self.policy,
            batch,
            self.optimizer,
            self._settings,
            kl_coef=kl_coef,
            generator=self._dealer,
            scaler=self._scaler,
            shards=self._shards,
        )

    def _look(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        ref_BT = reference_logprobs(
            self.policy, batch, micro_tokens=self._section.micro_tokens, temperature=self.temperature
        )
        return episode_metrics(batch, ref_BT, kl_coef)
