"""Supervised training in plain PyTorch: the engine `pure_pt_sft`.

In a run it learns the assistant's turns of the pool's dialogues, what the tools and the user said left out; of rows of
a file it learns their outputs. Base, adapter, checkpoints and exact resuming are those of every other engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from transformers import PreTrainedModel

from rc1_lib.training.api import Setup
from rc1_lib.training.diverged import check_finite_loss
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.sft import sft_look, sft_update
from rc1_lib.training.updates.batch import TokenBatch, collate_demonstrations
from rc1_lib.training.updates.optimizer_step import OptimizerStep


class PurePtSFT(PolicyEngine):
    """The engine `pure_pt_sft`; what it learns from are demonstrations (strategy `demonstrations`)."""

    learns_episodes: ClassVar[bool] = False

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
        self._train_adapter(base, setup)

    def _update(self, batch: TokenBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Nats a learned token before the step on it, as `loss`, and the share of right ones."""
        optimizer_step = OptimizerStep(self.optimizer, self._section.max_grad_norm, self._scaler)
        tally = sft_update(self.policy, batch, optimizer_step, self._section, self._dealer, self._shards)
        check_finite_loss(tally.mean("nats"))  # under fp16 the scaler has skipped the step
        return {"loss": tally.mean("nats"), "mean_token_accuracy": tally.mean("right"), **optimizer_step.metrics()}

    def _look(self, batch: TokenBatch, kl_coef: float) -> dict[str, float]:
        """Means over the learned tokens, without dropout, with the entropy of the next token."""
        training = self.policy.training
        self.policy.eval()
        tally = sft_look(self.policy, batch, self._section)
        self.policy.train(training)
        check_finite_loss(tally.mean("nats"))
        means = {"loss": "nats", "mean_token_accuracy": "right", "entropy": "entropy"}
        return {name: tally.mean(theirs) for name, theirs in means.items()}

    def _collated(self, batch: Mapping[str, Any]) -> TokenBatch:
        return collate_demonstrations(batch["demonstrations"], int(self.tokenizer.pad_token_id)).on(self.device)
