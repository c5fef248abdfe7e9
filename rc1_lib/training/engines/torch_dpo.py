"""DPO on pairs of the policy's own takes, on a causal model with an adapter: the engine `torch_dpo`."""

from __future__ import annotations

from transformers import PreTrainedModel

from rc1_lib.training.dpo.update import dpo_update
from rc1_lib.training.episode_engine import EpisodeEngine
from rc1_lib.training.setups import Setup
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.reading import ForwardOptions, read_episodes
from rc1_lib.training.updates.tally import episode_metrics


class TorchDPO(EpisodeEngine):
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

    def _objective(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        options = ForwardOptions(self._section.micro_tokens, self.temperature)
        return episode_metrics(batch, read_episodes(self.policy, batch, options).ref_logprobs, kl_coef)
