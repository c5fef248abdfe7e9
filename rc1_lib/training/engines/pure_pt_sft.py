"""Supervised training in plain PyTorch: the engine `pure_pt_sft`.

In a run it learns the assistant's turns of the pool's dialogues, what the tools and the user said left out; of rows of
a file it learns their outputs. Base, adapter, checkpoints and exact resuming are those of every other engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedModel

from rc1_lib.training.finite_step import check_finite_loss
from rc1_lib.training.playing_engine import PlayingEngine
from rc1_lib.training.setups import Setup
from rc1_lib.training.sft import sft_look, sft_update
from rc1_lib.training.updates.batch import TokenBatch, collate_demonstrations
from rc1_lib.training.updates.optimizer_step import OptimizerStep


class PurePtSFT(PlayingEngine):
    """The engine `pure_pt_sft`; what it learns from are demonstrations (strategy `demonstrations`)."""

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        self._train_adapter(base, setup)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One update from the batch's `demonstrations`.

        Returns:
            `loss` (nats a learned token, before the step on it), `lr`, `mean_token_accuracy`, `grad_norm` and
            `update/steps`.

        Raises:
            DivergedError: when the loss is not finite, or its gradients are not and no scaler skips the step.
        """
        rates = self._rates
        return {**self._together(self._learn, self._collated(batch), rates), "lr": rates[0]}

    def _learn(self, batch: TokenBatch, rates: Sequence[float]) -> dict[str, float]:
        self._set_rates(rates)
        optimizer_step = OptimizerStep(self.optimizer, self._section.max_grad_norm, self._scaler)
        with self._autocast():
            tally = sft_update(self.policy, batch, optimizer_step, self._section, self._dealer, self._shards)
        check_finite_loss(tally.mean("nats"))  # under fp16 the scaler has skipped the step
        return {"loss": tally.mean("nats"), "mean_token_accuracy": tally.mean("right"), **optimizer_step.metrics()}

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Means over the learned tokens of the batch's `demonstrations`, without dropout.

        Returns:
            `loss`, `mean_token_accuracy`, `entropy` of the next token, and `tokens`, their number.

        Raises:
            DivergedError: when the loss is not finite.
        """
        training = self.policy.training
        self.policy.eval()
        with self._autocast():
            tally = sft_look(self.policy, self._collated(batch), self._section)
        self.policy.train(training)
        check_finite_loss(tally.mean("nats"))
        means = {"loss": "nats", "mean_token_accuracy": "right", "entropy": "entropy"}
        return {name: tally.mean(theirs) for name, theirs in means.items()} | {"tokens": float(tally.tokens)}

    def _collated(self, batch: Mapping[str, Any]) -> TokenBatch:
        return collate_demonstrations(batch["demonstrations"], int(self.tokenizer.pad_token_id)).on(self.device)
