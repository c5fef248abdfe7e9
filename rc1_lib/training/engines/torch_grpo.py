"""GRPO on a causal model with an adapter and no value head: the engine `torch_grpo`."""

from __future__ import annotations

from transformers import PreTrainedModel

from rc1_lib.training.episode_engine import EpisodeEngine
from rc1_lib.training.grpo.settings import GRPOSettings
from rc1_lib.training.grpo.update import grpo_update
from rc1_lib.training.setups import Setup
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.reading import ForwardOptions, read_episodes
from rc1_lib.training.updates.tally import episode_metrics


class TorchGRPO(EpisodeEngine):
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

    def _objective(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        options = ForwardOptions(self._settings.update.micro_tokens, self.temperature)
        ref_BT = read_episodes(self.policy, batch, options).ref_logprobs
        return episode_metrics(batch, ref_BT, kl_coef)
