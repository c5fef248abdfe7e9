"""DPO on pairs of the policy's own rollouts: the engine `torch_dpo`. Each prompt's best rollout is preferred.

The loss of a pair depends on sums over two whole episodes, which may be in different forward passes. Its gradient with
respect to a token's log-probability is the same number for all tokens of an episode. So that number is computed first,
without gradients, and every pass then backpropagates weighted log-probabilities.
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
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
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
    """The engine `torch_dpo`. It learns from groups of rollouts (strategy `groups`)."""

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
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
            generator=self._minibatch_rng,
            scaler=self._scaler,
            shards=self._shards,
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rollouts of a prompt, as rows of the batch.

    Attributes:
        chosen: the best rollout.
        rejected: the worst rollout.
        differ: whether their scores differ; if not, nothing is learned from them.
    """

    chosen: int
    rejected: int
    differ: bool


def pairs_of(scores_B: Tensor, groups_B: Tensor) -> list[Pair]:
    """Return a pair for every group of at least two rollouts, in the order of the groups.

    Source: best and worst of several rollouts as in Dong et al., "RLHF Workflow: From Reward Modeling to Online RLHF"
    (2024), section 3.2.

    Args:
        scores_B: finite. Of equal scores, the first in the batch counts as best and the last as worst.
        groups_B: number of each rollout's group.

    Raises:
        RC1Error: if no group has two rollouts.
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
            f"found {len(scores)} scored rollouts of {len(takes)} prompts in this step, expected two rollouts of at "
            "least one prompt to form a pair; raise training.update.group_size, or find out why the judge scores so few"
        )
    return found


def pair_metrics(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return `pairs/differ`, the share of pairs that differ, and `frac_reward_zero_std`, TRL's name for the rest."""
    differ = fmean(pair.differ for pair in pairs)
    return {"pairs/differ": differ, "frac_reward_zero_std": 1.0 - differ}


@dataclass(frozen=True, slots=True)
class PairStats:
    """Loss and margin of a pair before the step on it."""

    loss: float
    margin: float


@dataclass(frozen=True, slots=True)
class DPOObjective:
    """The objective of one update (see `rc1_lib.training.updates.take_steps`).

    Attributes:
        batch: all rollouts.
        pairs: rollouts to compare.
        ref_B: log-probability of every rollout under the reference.
        update: the section of the configuration.
        temperature: of the log-probabilities.
        beta: KL coefficient of DPO.
        weights: (B,), derivative of the loss with respect to the log-probability of each token of an episode, as
            `minibatches` set it for the rows it yielded last.
        seen: statistics that `minibatches` collected of the pairs that differ.
    """

    batch: EpisodeBatch
    pairs: Sequence[Pair]
    ref_B: Tensor
    update: Update
    temperature: float
    beta: float
    weights: Tensor
    seen: list[PairStats] = field(default_factory=list)
    frozen: ClassVar[bool] = False

    def minibatches(self, policy: Policy, generator: torch.Generator, shards: Shards) -> Iterator[list[int]]:
        """Yield the rows of every optimizer step, always whole pairs, and set their weights with the current policy.

        The loss of a pair is -log sigmoid(beta * (gain of the chosen - gain of the rejected)), where a gain is the
        log-probability under the policy less that under the reference. A step's loss is their sum, divided by the
        average number of pairs in a step.

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
            self.seen.append(PairStats(float(softplus(-margin)), float(margin)))

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """Return the sampled tokens with their old log-probabilities, and the weight of each token's episode."""
        return {
            "actions": tokens.of(self.batch.ids),
            "old_logprobs": tokens.of(self.batch.old_logprobs),
            "weights": self.weights[tokens.rows],
        }

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Return weighted log-probabilities, whose gradient is that of the pairs' loss, and the entropy bonus."""
        log_p_nV = log_distribution(policy.logits(states_nD), self.temperature)
        logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
        pulled = (field_n["weights"] * logprobs_n).sum()
        # Nothing is clipped. The ratios are only measured, because the KL can end the update early.
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
    shards: Shards = ONE_SHARD,
) -> dict[str, float]:
    """Learn from the rollouts of one iteration.

    Sources: Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model" (2023);
    Guo et al., "Direct Language Model Alignment from Online AI Feedback" (2024), for pairs that the policy itself has
    just sampled. The log-probability of an episode is the sum over its action tokens.

    Args:
        policy: updated in place; without active dropout.
        batch: on the policy's device; rollouts of one row form a group.
        optimizer: over the policy's trainable parameters.
        section: of the configuration.
        temperature: sampling temperature.
        beta: KL coefficient, above 0.
        generator: on the CPU; shuffles pairs into minibatches.
        scaler: gradient scaler for fp16; it skips a step whose gradients are not finite.
        shards: how the work is divided. Every process calls this with the same arguments and ends with the same bits.

    Returns:
        Metrics of episodes, tokens, optimizer steps and `UpdateResult`. `loss` is the mean over the pairs that differ
        (0 without any); `rewards/margins` and `rewards/accuracies` are theirs too, named as in TRL. Also those of
        `pair_metrics`.

    Raises:
        RC1Error: if no prompt has two scored rollouts.
        DivergedError: if, without a gradient scaler, a gradient is not finite.
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
        **pair_metrics(pairs),
    }
    of_steps = taken.tally.metrics() | optimizer_step.metrics() | taken.metrics()
    return episode_metrics(batch, ref_BT, beta) | of_steps | of_pairs
