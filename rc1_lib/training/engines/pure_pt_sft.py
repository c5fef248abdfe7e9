"""Supervised training in plain PyTorch: the engine `pure_pt_sft`.

In a run it learns the assistant's turns of the pool's dialogues, what the tools and the user said left out; of rows of
a file it learns their outputs. Base, adapter, checkpoints and exact resuming are those of every other engine.
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
from rc1_lib.training.updates.batch import TokenBatch, collate_demonstrations, micro_batches
from rc1_lib.training.updates.forward import ActionTokens, action_tokens, entropy, log_distribution
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.metrics import Tally
from rc1_lib.training.updates.take_steps import OptimizerStep, dealt, gradients_of


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


@dataclass(frozen=True, slots=True)
class SFTObjective:
    """The objective of one minibatch, see `rc1_lib.training.updates.take_steps`: the assistant's next token.

    Attributes:
        batch: all demonstrations.
        update: the section of the configuration.
        tokens: own tokens of the minibatch, which the loss is a mean over.
    """

    batch: TokenBatch
    update: Steps
    tokens: int

    @property
    def frozen(self) -> bool:
        """Never: there is nothing else to learn."""
        return False

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """The tokens that the assistant said."""
        return {"said": tokens.of(self.batch.ids)}

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Cross entropy, and the sums `nats` of it and `right`, tokens that were the likeliest."""
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
    """Learns a step's demonstrations; the loss of a minibatch is the mean over its own tokens.

    Args:
        policy: stepped in place.
        batch: on the policy's device.
        optimizer_step: over the policy's trainable parameters.
        section: of the configuration.
        generator: on the CPU; deals demonstrations to minibatches.
        shards: how learning is dealt out. Every process that has a share calls this with the same arguments, and all
            end with the same bits.

    Returns:
        The sums over all own tokens, as they were before the step on them.

    Raises:
        DivergedError: when the loss or its gradients are not finite and no scaler is there to skip the step.
    """
    tally = Tally()
    for rows in dealt(len(batch), section, generator):
        objective = SFTObjective(batch, section, int(batch.action_mask[rows].sum()))
        tally.absorb(gradients_of(policy, objective, rows, optimizer_step, shards))
        with timed(Section.OPTIMIZER):
            optimizer_step.step()
    return tally


@torch.no_grad()
def sft_look(policy: Policy, batch: TokenBatch, section: Steps) -> Tally:
    """The same sums over all own tokens, and `entropy`, that of the next token in nats; nothing is learned."""
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
