"""DPO on pairs of the policy's own takes, on a causal model with an adapter: the engine `torch_dpo`."""

from __future__ import annotations

from transformers import PreTrainedModel

from rc1_lib.training.api import Setup
from rc1_lib.training.dpo import dpo_update
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.forward import reference_logprobs
from rc1_lib.training.updates.metrics import episode_metrics


class TorchDPO(PolicyEngine):
    """The engine `torch_dpo`; what it learns from are groups of takes (strategy `groups`)."""

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        self._train_adapter(base, setup)
        self._settings = setup.config.training.update

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        return dpo_update(
            self.policy,
            batch,
            self.optimizer,
            self._settings,
            temperature=self.temperature,
            beta=kl_coef,
            generator=self._dealer,
            scaler=self._scaler,
            shards=self._shards,
        )

    def _look(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        ref_BT = reference_logprobs(
            self.policy, batch, micro_tokens=self._section.micro_tokens, temperature=self.temperature
        )
        return episode_metrics(batch, ref_BT, kl_coef)
