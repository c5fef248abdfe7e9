"""What engines share that learn from episodes of their own: one step, and how far sampling and learning are apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rc1_lib.training.playing_engine import PlayingEngine
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.setups import Setup
from rc1_lib.training.updates.batch import EpisodeBatch, collate
from rc1_lib.training.updates.kl_control import kl_control
from rc1_lib.training.updates.parity import check_parity, distance, farther
from rc1_lib.training.updates.reading import ForwardOptions, policy_logprobs


class EpisodeEngine(PlayingEngine):
    """An engine whose policy plays episodes and learns from them; how it learns is the subclass's."""

    fixed_kl: ClassVar[bool] = False
    """Whether `kl_coef` stays whatever `training.update.adaptive_kl` says."""

    @abstractmethod
    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Learn from the batch; every process does the same on its shards, and comes to the same bits."""
        ...

    @abstractmethod
    def _objective(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        """What the batch's episodes were like."""
        ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `trajectories` and `scores`; `step` counts the finished ones.

        Raises:
            ParityError: when the tokens were sampled with other probabilities than they are learned with; the engine
                has learned from them then, and is of no more use.
        """
        rates = self._rates
        metrics = self._together(self._learn, self._collated(batch), self._kl.coef, batch["step"], rates)
        check_parity(metrics, self._parity, batch["step"])
        self._kl.update(metrics["objective/kl_per_token"])
        return {**metrics, "lr": rates[0]}

    def _learn(self, batch: EpisodeBatch, kl_coef: float, iteration: int, rates: Sequence[float]) -> dict[str, float]:
        self._set_rates(rates)
        with self._autocast():
            if self._copy is None and self._training.rollout.sampler == "own":
                return self._update(batch, kl_coef, iteration)
            read, apart = self._read_again(batch)
            metrics = self._update(read, kl_coef, iteration)
            return metrics | farther(apart, metrics)

    def _read_again(self, batch: EpisodeBatch) -> tuple[EpisodeBatch, dict[str, float]]:
        """A batch that a copy or a server sampled, with the policy's own log-probabilities, and how far apart both are.

        Otherwise the first ratios of the update would hold what they round.
        """
        options = ForwardOptions(self._micro_tokens, self.temperature)
        with self._playing(self.plays_start):
            read_BT = policy_logprobs(self.policy, batch, range(len(batch)), options, self._shards)
        return replace(batch, old_logprobs=read_BT), distance(batch.old_logprobs[batch.own], read_BT[batch.own])

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """What the batch's episodes were like, without learning from them."""
        collated = self._collated(batch)
        with self._autocast():
            return {**self._objective(collated, self._kl.coef), "tokens": float(collated.own_tokens)}

    def _collated(self, batch: Mapping[str, Any]) -> EpisodeBatch:
        return collate(batch["trajectories"], batch["scores"], self.playground.form.pad_id).on(self.device)

    def _build(self, setup: Setup, shards: Shards) -> None:
        super()._build(setup, shards)
        config = setup.config
        self._parity, self._micro_tokens = config.training.parity, config.training.update.micro_tokens
        self._kl = kl_control(config.kl_coef, config.target_kl, config.training.update, fixed=self.fixed_kl)

    def state_dict(self) -> dict[str, Any]:
        """That of every engine of a run, and `kl`."""
        return {**super().state_dict(), "kl": self._kl.state_dict()}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        self._kl.load_state_dict(state["kl"])
