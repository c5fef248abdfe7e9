"""DPO on pairs of the policy's own rollouts, the engine `torch_dpo`: a prompt's best becomes likelier than its worst.

The loss of a pair hangs on sums over two whole episodes, which need not share a forward pass. Its gradient by a token's
log-probability is the same number for all tokens of an episode; so that number is worked out first, without gradients,
and then every pass goes backward from weighted log-probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus
from torch.optim import Optimizer
from transformers import PreTrainedModel

from rc1_lib.config.updates import Update
from rc1_lib.errors import RC1Error
from rc1_lib.training.api import Setup
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.policy import Policy
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates.batch import EpisodeBatch, minibatch_rows
from rc1_lib.training.updates.forward import (
    ActionTokens,
    entropy,
    log_distribution,
    policy_logprobs,
    reference_logprobs,
)
from rc1_lib.training.updates.losses import Loss, clipped_surrogate, entropy_loss
from rc1_lib.training.updates.metrics import episode_metrics
from rc1_lib.training.updates.take_steps import OptimizerStep, take_steps


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


@dataclass(frozen=True, slots=True)
class Pair:
    """Two takes of a prompt, by their rows in the batch.

    Attributes:
        chosen: the best.
        rejected: the worst.
        differ: whether one scored more than the other; where not, nothing is learned from them.
    """

    chosen: int
    rejected: int
    differ: bool


def pairs_of(scores_B: Tensor, groups_B: Tensor) -> list[Pair]:
    """A pair for every group of at least two takes, in the order of the groups.

    Source: best and worst of several takes as in Dong et al., "RLHF Workflow: From Reward Modeling to Online RLHF"
    (2024), section 3.2.

    Args:
        scores_B: finite; of equals the first in the batch is the best, and the last the worst.
        groups_B: number of each take's group.

    Raises:
        RC1Error: when no group has two takes.
    """
    takes: dict[int, list[int]] = {}
    for row, group in enumerate(groups_B.tolist()):
        takes.setdefault(group, []).append(row)
    scores = scores_B.tolist()
    found = []
    for rows in (takes[group] for group in sorted(takes) if len(takes[group]) > 1):
        best, worst = max(rows, key=lambda row: (scores[row], -row)), min(rows, key=lambda row: (scores[row], -row))
        found.append(Pair(best, worst, scores[best] > scores[worst]))
    if not found:
        raise RC1Error(
            f"found {len(scores)} scored takes of {len(takes)} prompts in this step, expected two takes of at least "
            f"one prompt, since a pair is what is learned from; raise training.update.group_size, or find out why the "
            f"judge scores so few"
        )
    return found


def share_that_differ(pairs: Sequence[Pair]) -> dict[str, float]:
    """Metrics: `pairs/differ`, and `frac_reward_zero_std`, which is TRL's name for the share of the other pairs."""
    differ = fmean(pair.differ for pair in pairs)
    return {"pairs/differ": differ, "frac_reward_zero_std": 1.0 - differ}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pair looked like before a step was taken on it."""

    loss: float
    margin: float


@dataclass(frozen=True, slots=True)
class DPOObjective:
    """The objective of one update, see `rc1_lib.training.updates.take_steps`.

    Attributes:
        batch: all takes.
        pairs: which of them are compared.
        ref_B: log-probability of every take under the reference.
        update: the section of the configuration.
        temperature: that log-probabilities are taken under.
        beta: price of a nat of KL to the reference.
        weights: (B,), the loss's derivative by the log-probability of every token of an episode, as `minibatches` found
            it for the rows that it gave last.
        seen: what `minibatches` found of the pairs that differ.
    """

    batch: EpisodeBatch
    pairs: Sequence[Pair]
    ref_B: Tensor
    update: Update
    temperature: float
    beta: float
    weights: Tensor
    seen: list[Seen] = field(default_factory=list)
    frozen: ClassVar[bool] = False

    def minibatches(self, policy: Policy, generator: torch.Generator, shards: Shards) -> Iterator[list[int]]:
        """The rows of every step, whole pairs, weighed with the policy of that moment.

        The loss of a pair is -log sigmoid(beta * (how much likelier than under the reference the chosen take is, less
        the same of the rejected one)); a step's is their mean over an average step's pairs.

        Source: Rafailov et al., "Direct Preference Optimization" (2023), equation 7.
        """
        steps = min(self.update.minibatches, len(self.pairs))
        for _ in range(self.update.epochs):
            for numbers in minibatch_rows(len(self.pairs), steps, generator):
                some = [self.pairs[number] for number in numbers]
                rows = [row for pair in some for row in (pair.chosen, pair.rejected)]
                self._weigh(policy, some, rows, steps / len(self.pairs), shards)
                yield rows

    def _weigh(self, policy: Policy, some: Sequence[Pair], rows: Sequence[int], share: float, shards: Shards) -> None:
        now_BT = policy_logprobs(
            policy, self.batch, rows,
            micro_tokens=self.update.micro_tokens, temperature=self.temperature, shards=shards,
        )  # fmt: skip
        gained_B = now_BT.sum(dim=1) - self.ref_B
        self.weights.zero_()
        for pair in some:
            if not pair.differ:
                continue
            margin = self.beta * (gained_B[pair.chosen] - gained_B[pair.rejected])
            pull = share * self.beta * torch.sigmoid(-margin)
            self.weights[pair.chosen] = -pull
            self.weights[pair.rejected] = pull
            self.seen.append(Seen(float(softplus(-margin)), float(margin)))

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """What was sampled, and the weight that every token of an episode shares."""
        return {
            "actions": tokens.of(self.batch.ids),
            "old_logprobs": tokens.of(self.batch.old_logprobs),
            "weights": self.weights[tokens.rows],
        }

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Weighted log-probabilities, whose gradient is that of the pairs' loss; and the entropy bonus."""
        log_p_nV = log_distribution(policy.logits(states_nD), self.temperature)
        logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
        pulled = (field_n["weights"] * logprobs_n).sum()
        # Nothing is clipped; the ratios are looked at, since the KL may end the update.
        nothing = torch.zeros_like(pulled)
        ratios = clipped_surrogate(logprobs_n.detach(), field_n["old_logprobs"], nothing, low=1.0, high=1.0)
        with torch.set_grad_enabled(self.update.entropy_coef > 0):
            bonus = entropy_loss(entropy(log_p_nV), normaliser=self.batch.action_count / self.update.minibatches)
        loss = pulled + self.update.entropy_coef * bonus.loss
        return Loss(loss, {"loss": loss.detach(), "policy_loss": pulled.detach(), **ratios.sums, **bonus.sums})


def dpo_update(
    policy: Policy,
    batch: EpisodeBatch,
    optimizer: Optimizer,
    section: Update,
    *,
    temperature: float,
    beta: float,
    generator: torch.Generator,
    scaler: torch.amp.GradScaler | None = None,
    shards: Shards = ONE,
) -> dict[str, float]:
    """Learns from the takes of one iteration.

    Sources: Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model" (2023);
    Guo et al., "Direct Language Model Alignment from Online AI Feedback" (2024), for pairs that the policy itself has
    just sampled. The log-probability of an episode is the sum over its own tokens.

    Args:
        policy: stepped in place; without active dropout.
        batch: on the policy's device; takes of one row are one group.
        optimizer: over the policy's trainable parameters; stepped in place.
        section: of the configuration.
        temperature: that tokens were sampled at.
        beta: price of a nat of KL to the reference, above 0.
        generator: on the CPU; deals pairs to minibatches.
        scaler: for fp16 only; a step whose gradients are not finite is then skipped, as it does.
        shards: how reading and learning are dealt out. Every process that has a share calls this with the same
            arguments, and all end with the same bits.

    Returns:
        Metrics of the episodes, the tally, the optimizer's steps and `UpdateResult`; `loss` is the mean over the pairs
        that differ (0 without one), `rewards/margins` and `rewards/accuracies` are theirs, as TRL names them; and those
        of `share_that_differ`.

    Raises:
        RC1Error: when no prompt has two scored takes.
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    pairs = pairs_of(batch.scores, batch.groups)
    ref_BT = reference_logprobs(
        policy, batch, micro_tokens=section.micro_tokens, temperature=temperature, shards=shards
    )
    objective = DPOObjective(
        batch=batch,
        pairs=pairs,
        ref_B=ref_BT.sum(dim=1),
        update=section,
        temperature=temperature,
        beta=beta,
        weights=torch.zeros_like(batch.scores),
    )
    optimizer_step = OptimizerStep(optimizer, section.max_grad_norm, scaler)
    minibatches = objective.minibatches(policy, generator, shards)
    taken = take_steps(policy, objective, minibatches, section.kl_stop, optimizer_step, shards)
    seen = objective.seen
    of_pairs = {
        "loss": fmean(one.loss for one in seen) if seen else 0.0,
        "rewards/margins": fmean(one.margin for one in seen) if seen else 0.0,
        "rewards/accuracies": fmean(one.margin > 0 for one in seen) if seen else 0.0,
        **share_that_differ(pairs),
    }
    of_steps = taken.tally.metrics() | optimizer_step.metrics() | taken.metrics()
    return episode_metrics(batch, ref_BT, beta) | of_steps | of_pairs
