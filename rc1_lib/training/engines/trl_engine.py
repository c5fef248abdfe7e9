"""What the engines of a run share whose updates are trainings of TRL's own.

Rollouts, scores, the loop over the steps, callbacks and checkpoints are those of every engine of a run. Each step is a
training through TRL, with the run's own optimizer, by the first process; the others, which only play, get the adapter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, ClassVar

import torch
from transformers import PrinterCallback, Trainer, set_seed

from rc1_lib.training.episode_engine import EpisodeEngine
from rc1_lib.training.finite_step import check_finite_loss
from rc1_lib.training.playing_engine import PlayingEngine
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.trl_trainers import FiniteSteps, Logged, adapter_kept, arguments_of_a_step, rates_kept
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.parity import distance
from rc1_lib.training.updates.reading import Manner, policy_logprobs, read_episodes
from rc1_lib.training.updates.tally import episode_metrics


class TrlEngine(PlayingEngine):
    """An engine of a run that learns through TRL."""

    _made: Trainer | None
    _logged: Logged

    @abstractmethod
    def _trainer(self, arguments: dict[str, Any], **over: Any) -> Trainer:
        """TRL's trainer, by arguments for its configuration, and keywords: model, tokenizer, optimizer, callbacks."""
        ...

    def _train(self, data: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Train through TRL on the data of a step, and give every process what was learned.

        Returns:
            What TRL logs, as means over the optimizer's steps, and `update/steps`, their number.

        Raises:
            DivergedError: when gradients are not finite and no scaler is there to skip the step, or the loss is not.
        """
        if self._made is None:  # here, since processes and evaluations that only play need none
            self._made = self._make()
        trainer, training = self._made, self.policy.training
        trainer.train_dataset = data
        set_seed(int(torch.randint(2**31, (), generator=self._dealer)))  # TRL deals minibatches by torch's generator
        trainer.train()
        self.policy.train(training)
        self._together("_load_adapter", self.policy.adapter_state())
        logs = self._logged.taken()
        for log in logs:
            check_finite_loss(log["loss"])
        found = {name: [log[name] for log in logs if log.get(name) is not None] for name in logs[0]}
        return {name: fmean(values) for name, values in found.items() if values} | {"update/steps": float(len(logs))}

    def _make(self) -> Trainer:
        arguments = arguments_of_a_step(self.device, self.precision, self.seed)
        update, model, self._logged = self._training.update, self.policy.peft, Logged()
        with adapter_kept(model):
            made = self._trainer(
                arguments | {"num_train_epochs": update.epochs, "max_grad_norm": update.max_grad_norm},
                model=model,
                processing_class=self.playground.form.tokenizer,
                optimizers=(self.optimizer, rates_kept(self.optimizer)),
                callbacks=[self._logged, FiniteSteps(self.optimizer, self._scaler)],
            )
        made.remove_callback(PrinterCallback)
        if self._scaler is not None:
            made.accelerator.scaler = self._scaler  # the one whose state is saved
        return made

    def _build(self, setup: EpisodeSetup, shards: Shards) -> None:
        self._made = None
        super()._build(setup, shards)


class TrlEpisodeEngine(TrlEngine, EpisodeEngine):
    """An engine that learns from episodes through TRL."""

    fixed_kl: ClassVar[bool] = True

    @abstractmethod
    def _taught(self, batch: EpisodeBatch) -> dict[str, float]:
        """Learn from the batch, in this process alone."""
        ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `trajectories` and `scores`; `step` counts the finished ones.

        Raises:
            ParityError: before anything is learned, when the policy reads the tokens with other probabilities than they
                were sampled with.
        """
        return super().train_step(batch) | self._taught(self._collated(batch))

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Only look, in every process: TRL learns after it."""
        return self._seen(batch, kl_coef, self._shards)

    def _objective(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        return self._seen(batch, kl_coef, ONE)

    def _seen(self, batch: EpisodeBatch, kl_coef: float, shards: Shards) -> dict[str, float]:
        """What the episodes were like, and how far what samples is from what reads them at the same temperature.

        Where the initial policy played them, the KL is from it to the policy.
        """
        manner = Manner(self._micro_tokens, self.temperature)
        now_BT = policy_logprobs(self.policy, batch, range(len(batch)), manner, shards)
        ref_BT = read_episodes(self.policy, batch, manner, shards).ref_logprobs
        played_BT, other_BT = (ref_BT, now_BT) if self.plays_start else (now_BT, ref_BT)
        sampled_N = batch.old_logprobs[batch.own]
        return episode_metrics(batch, other_BT, kl_coef) | {
            "ratio": float((now_BT[batch.own] - sampled_N).exp().mean()),
            **distance(sampled_N, played_BT[batch.own]),
        }


def rows_of_a_pass(minibatch: int, most: int) -> int:
    """The most rows, at least one and at most `most`, that divide a minibatch into equal passes."""
    return max(rows for rows in range(1, max(min(most, minibatch), 1) + 1) if minibatch % rows == 0)
