"""Supervised training of a run's adapter in plain PyTorch: the engine `pure_pt_sft`, in a run.

It learns the assistant's turns of the pool's dialogues, what the tools and the user said left out. The policy plays in
evaluations alone; base, adapter, processes, checkpoints and exact resuming are those of every other engine of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from rc1_lib.training.playing_engine import PlayingEngine
from rc1_lib.training.setups import EpisodeSetup
from rc1_lib.training.sft.update import sft_update
from rc1_lib.training.train_config import LoraSection
from rc1_lib.training.updates.batch import TokenBatch, collate_demonstrations
from rc1_lib.training.updates.reading import Manner, policy_logprobs
from rc1_lib.training.updates.stepper import Stepper


class PurePtDemonstrations(PlayingEngine):
    """The engine `pure_pt_sft` of a run; what it learns from are demonstrations (strategy `demonstrations`)."""

    def _begin(self, setup: EpisodeSetup, base: PreTrainedModel, adapter: LoraSection) -> None:
        config = setup.config
        self._train_adapter(base, adapter, config.lr)
        self._section = config.training.update

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `demonstrations`.

        Returns:
            `loss` (nats a learned token, before the step on it), `lr`, `mean_token_accuracy`, `grad_norm` and
            `update/steps`.

        Raises:
            DivergedError: when the loss or its gradients are not finite and no scaler is there to skip the step.
        """
        rates = self._rates
        return {**self._together("_learn", self._collated(batch), rates), "lr": rates[0]}

    def _learn(self, batch: TokenBatch, rates: Sequence[float]) -> dict[str, float]:
        self._set_rates(rates)
        stepper = Stepper(self.optimizer, self._section.max_grad_norm, self._scaler)
        with self._autocast():
            tally = sft_update(self.policy, batch, stepper, self._section, self._dealer, self._shards)
        return {"loss": tally.mean("nats"), "mean_token_accuracy": tally.mean("right"), **stepper.metrics()}

    @torch.no_grad()
    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """`loss` over the learned tokens of the batch's `demonstrations`, and `tokens`, their number."""
        collated = self._collated(batch)
        with self._autocast():
            found_BT = policy_logprobs(
                self.policy, collated, range(len(collated)), Manner(self._section.micro_tokens, 1.0)
            )
        return {"loss": -float(found_BT.sum()) / collated.own_tokens, "tokens": float(collated.own_tokens)}

    def _collated(self, batch: Mapping[str, Any]) -> TokenBatch:
        return collate_demonstrations(batch["demonstrations"], self.playground.form.pad_id).on(self.device)
