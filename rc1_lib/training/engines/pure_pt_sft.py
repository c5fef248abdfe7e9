"""Supervised finetuning in plain PyTorch: the engine `pure_pt_sft`.

In a run it learns only the assistant's tokens of the pool's dialogues, not those of tools or user. From rows of a file
it learns the outputs. Base, adapter, checkpoints and exact resuming are those of every engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from rc1_lib.config.updates import Steps
from rc1_lib.training.api import Setup
from rc1_lib.training.diverged import check_finite_loss
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.policy import Policy
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.updates.batch import TokenBatch, collate_demonstrations, micro_batches, minibatch_rows
from rc1_lib.training.updates.forward import ActionTokens, action_tokens, entropy, log_distribution
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.metrics import Tally
from rc1_lib.training.updates.take_steps import OptimizerStep, gradients_of


class PurePtSFT(PolicyEngine):
    """The engine `pure_pt_sft`. It learns from demonstrations (strategy `demonstrations`)."""

    learns_episodes: ClassVar[bool] = False

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        self._train_adapter(base, setup)

    def _update(self, batch: TokenBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        """Learn and return `loss`, in nats per trained token before its step, and the share of correct tokens."""
        optimizer_step = OptimizerStep(self.optimizer, self._section.max_grad_norm, self._scaler)
        tally = sft_update(self.policy, batch, optimizer_step, self._section, self._minibatch_rng, self._shards)
        check_finite_loss(tally.mean("nats"))  # in fp16 the scaler has already skipped the step
        return {"loss": tally.mean("nats"), "mean_token_accuracy": tally.mean("right"), **optimizer_step.metrics()}

    def _evaluate(self, batch: TokenBatch, kl_coef: float) -> dict[str, float]:
        """Return means over the trained tokens, without dropout, and the entropy of the next token."""
        training = self.policy.training
        self.policy.eval()
        tally = sft_metrics(self.policy, batch, self._section)
        self.policy.train(training)
        check_finite_loss(tally.mean("nats"))
        means = {"loss": "nats", "mean_token_accuracy": "right", "entropy": "entropy"}
        return {name: tally.mean(theirs) for name, theirs in means.items()}

    def _collated(self, batch: Mapping[str, Any]) -> TokenBatch:
        return collate_demonstrations(batch["demonstrations"], int(self.tokenizer.pad_token_id)).on(self.device)


@dataclass(frozen=True, slots=True)
class SFTObjective:
    """The objective of one minibatch (see `rc1_lib.training.updates.take_steps`): cross-entropy of action tokens.

    Attributes:
        update: the section of the configuration.
        tokens: number of action tokens in the minibatch; the loss is a mean over them.
    """

    batch: TokenBatch
    update: Steps
    tokens: int

    @property
    def frozen(self) -> bool:
        """False: the policy always learns."""
        return False

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """Return the action tokens."""
        return {"said": tokens.of(self.batch.ids)}

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Compute the cross-entropy, its sum `nats`, and `right`, the number of correct predictions."""
        nats, right = _nats_and_right(policy.logits(states_nD).float(), field_n["said"])
        return Loss(nats / self.tokens, {"nats": nats.detach(), "right": right})


def sft_update(
    policy: Policy,
    batch: TokenBatch,
    optimizer_step: OptimizerStep,
    section: Steps,
    generator: torch.Generator,
    shards: Shards,
) -> Tally:
    """Learn a step's demonstrations. The loss of a minibatch is the mean over its action tokens.

    Args:
        policy: updated in place.
        batch: on the policy's device.
        optimizer_step: over the policy's trainable parameters.
        generator: on the CPU; shuffles demonstrations into minibatches.
        shards: how the work is divided. Every process calls this with the same arguments and ends with the same bits.

    Returns:
        Sums over all action tokens, each computed before the step on it.

    Raises:
        DivergedError: if the loss or, without a gradient scaler, a gradient is not finite.
    """
    tally = Tally()
    for rows in minibatch_rows(len(batch), section.minibatches, generator):
        objective = SFTObjective(batch, section, int(batch.action_mask[rows].sum()))
        tally.add_minibatch(gradients_of(policy, objective, rows, optimizer_step, shards))
        with timed(Section.OPTIMIZER):
            optimizer_step.step()
    return tally


@torch.no_grad()
def sft_metrics(policy: Policy, batch: TokenBatch, section: Steps) -> Tally:
    """Compute the same sums without learning, and `entropy`, that of the next token in nats."""
    tally = Tally()
    for rows in micro_batches(range(len(batch)), batch.lengths.tolist(), section.micro_tokens):
        tokens = action_tokens(batch, rows)
        states_ND, said_N = tokens.hidden(policy), tokens.of(batch.ids)
        for part in tokens.chunks():
            logits_nV = policy.logits(states_ND[part]).float()
            nats, right = _nats_and_right(logits_nV, said_N[part])
            entropies_n = entropy(log_distribution(logits_nV, 1.0))
            tally.add({"nats": nats, "right": right, "entropy": entropies_n.sum()}, len(entropies_n))
    return tally


def _nats_and_right(logits_nV: Tensor, said_n: Tensor) -> tuple[Tensor, Tensor]:
    return cross_entropy(logits_nV, said_n, reduction="sum"), (logits_nV.detach().argmax(dim=-1) == said_n).sum()
