"""GRPO on a causal language model with an adapter: the engine `torch_grpo`.

Rollouts of the same prompt are compared with each other, so no value head is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer
from transformers import PreTrainedModel

from rc1_lib.config.updates import GRPO, Update
from rc1_lib.training.api import Setup
from rc1_lib.training.device import to_device
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.policy import Policy
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
from rc1_lib.training.updates.batch import EpisodeBatch, minibatch_rows
from rc1_lib.training.updates.forward import (
    ActionTokens,
    entropy,
    log_distribution,
    reference_logprobs,
)
from rc1_lib.training.updates.losses import Loss, clipped_surrogate, kl_k3
from rc1_lib.training.updates.metrics import episode_metrics
from rc1_lib.training.updates.take_steps import OptimizerStep, take_steps


class TorchGRPO(PolicyEngine):
    """The engine `torch_grpo`. It learns from groups of rollouts (strategy `groups`)."""

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        config = setup.config
        self._train_adapter(base, setup)
        self._settings = GRPOSettings(config.training.update, config.training.grpo, config.clip, self.temperature)

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        return grpo_update(
            self.policy,
            batch,
            self.optimizer,
            self._settings,
            kl_coef=kl_coef,
            generator=self._minibatch_rng,
            scaler=self._scaler,
            shards=self._shards,
        )


@dataclass(frozen=True, slots=True)
class GRPOSettings:
    """Settings of an update. The KL coefficient is separate, because a controller may change it.

    Attributes:
        update: the section of the configuration that all engines share.
        grpo: GRPO's own section.
        clip: how far the ratio may move from 1 before its gradient is cut, above 0.
        temperature: sampling temperature, above 0; all log-probabilities use it.
    """

    update: Update
    grpo: GRPO
    clip: float
    temperature: float


EPSILON = 1e-4
"""Added to a standard deviation before dividing by it, as in TRL."""


@dataclass(frozen=True, slots=True)
class GroupAdvantages:
    """Advantages of rollouts relative to their group.

    Attributes:
        advantages: (B,), 0 if all rollouts of a group have the same score.
        flat: share of groups whose rollouts all have the same score; nothing is learned from them.
    """

    advantages: Tensor
    flat: float


def group_advantages(scores_B: Tensor, groups_B: Tensor, scale: Literal["group", "batch", "none"]) -> GroupAdvantages:
    """Subtract the group's mean from each score, and divide by the standard deviation of the group, the batch, or not.

    Standard deviations are those of a sample (n - 1), as in TRL. The advantage of a group's only rollout is 0.

    Sources: Shao et al., "DeepSeekMath" (2024), section 4.1.2, for `group`; Liu et al., "Understanding R1-Zero-Like
    Training" (Dr. GRPO, 2025), section 3.2, for `none`: dividing by the group's deviation gives more weight to prompts
    that are nearly always or hardly ever solved; Liu et al., "Part I: Tricks or Traps?" (2025), for `batch`.

    Args:
        scores_B: (B,), finite.
        groups_B: int64 (B,), number of each rollout's group, from 0.
    """
    sizes_G = torch.bincount(groups_B).to(scores_B.dtype)
    means_G = torch.zeros_like(sizes_G).index_add(0, groups_B, scores_B) / sizes_G
    centred_B = scores_B - means_G[groups_B]
    squares_G = torch.zeros_like(sizes_G).index_add(0, groups_B, centred_B.square())
    deviations_G = (squares_G / (sizes_G - 1).clamp(min=1)).sqrt()
    least_G, most_G = (
        torch.zeros_like(sizes_G).scatter_reduce(0, groups_B, scores_B, end, include_self=False)
        for end in ("amin", "amax")
    )
    flat = float((least_G == most_G).double().mean())
    if scale == "group":
        centred_B = centred_B / (deviations_G[groups_B] + EPSILON)
    elif scale == "batch" and len(scores_B) > 1:
        centred_B = centred_B / (scores_B.std() + EPSILON)
    return GroupAdvantages(centred_B, flat)


@dataclass(frozen=True, slots=True)
class GRPOObjective:
    """The objective of one update (see `rc1_lib.training.updates.take_steps`).

    Attributes:
        advantages: (B,), per episode.
        weight: of every token, so that an average optimizer step takes the mean over its tokens (Yu et al., "DAPO"
            (2025), section 3.3).
        ref_logprobs: (B, T), of the sampled tokens under the reference.
        kl_coef: KL coefficient, applied at every token.
    """

    batch: EpisodeBatch
    advantages: Tensor
    weight: float
    ref_logprobs: Tensor
    settings: GRPOSettings
    kl_coef: float
    frozen: ClassVar[bool] = False

    @property
    def update(self) -> Update:
        """The section of the configuration."""
        return self.settings.update

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """Return sampled tokens and their log-probabilities, with the advantage of their episodes."""
        return {
            "actions": tokens.of(self.batch.ids),
            "old_logprobs": tokens.of(self.batch.old_logprobs),
            "ref_logprobs": tokens.of(self.ref_logprobs),
            "advantages": self.advantages[tokens.rows],
        }

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Compute clipped surrogate and KL losses of a chunk of states, and measure its entropy.

        The KL is the k3 estimate. It is part of the loss, not of the reward.

        Source: Shao et al., "DeepSeekMath" (2024), equations 3 and 4.
        """
        settings = self.settings
        log_p_nV = log_distribution(policy.logits(states_nD), settings.temperature)
        logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
        surrogate = clipped_surrogate(logprobs_n, field_n["old_logprobs"], field_n["advantages"], clip=settings.clip)
        gained = -(self.weight * surrogate.gains).sum()
        left = (self.weight * kl_k3(logprobs_n, field_n["ref_logprobs"])).sum()
        with torch.no_grad():
            measured = {"entropy": entropy(log_p_nV).sum()}
        loss = gained + self.kl_coef * left
        losses = {"loss": loss.detach(), "policy_loss": gained.detach(), "kl_loss": left.detach()}
        return Loss(loss, {**losses, **surrogate.sums, **measured})


def grpo_update(
    policy: Policy,
    batch: EpisodeBatch,
    optimizer: Optimizer,
    settings: GRPOSettings,
    *,
    kl_coef: float,
    generator: torch.Generator,
    scaler: torch.amp.GradScaler | None = None,
    shards: Shards = ONE_SHARD,
) -> dict[str, float]:
    """Learn from the rollouts of one iteration.

    An episode's advantage is relative to the other rollouts of its prompt, and applies to each of its action tokens.
    The old log-probabilities are those of sampling; the reference's are computed here.

    Sources: Shao et al., "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models" (2024),
    section 4.1; for its variants see `group_advantages`.

    Args:
        policy: updated in place; without active dropout.
        batch: on the policy's device, at least as many episodes as minibatches; rollouts of one row form a group.
        optimizer: over the policy's trainable parameters.
        kl_coef: KL coefficient, at least 0; at 0 the KL is still reported.
        generator: on the CPU; shuffles rows into minibatches.
        scaler: gradient scaler for fp16; it skips a step whose gradients are not finite.
        shards: how the work is divided. Every process calls this with the same arguments and ends with the same bits.

    Returns:
        Metrics of episodes, tokens, optimizer steps and `UpdateResult`; `loss/kl_avg`, the mean KL in the loss, and
        `frac_reward_zero_std`, the share of groups from which nothing is learned.

    Raises:
        DivergedError: if, without a gradient scaler, a gradient is not finite.
    """
    update = settings.update
    ref_BT = reference_logprobs(
        policy, batch, micro_tokens=update.micro_tokens, temperature=settings.temperature, shards=shards
    )
    # On the CPU, where sums over groups always add in the same order.
    compared = group_advantages(batch.scores.cpu(), batch.groups.cpu(), settings.grpo.scale_rewards)
    objective = GRPOObjective(
        batch=batch,
        advantages=to_device(compared.advantages, batch.scores.device),
        weight=update.minibatches / batch.action_count,
        ref_logprobs=ref_BT,
        settings=settings,
        kl_coef=kl_coef,
    )
    optimizer_step = OptimizerStep(optimizer, update.max_grad_norm, scaler)
    minibatches = minibatch_rows(len(batch), update.minibatches, generator)
    taken = take_steps(policy, objective, minibatches, update.kl_stop, optimizer_step, shards)
    of_groups = {"loss/kl_avg": taken.tally.minibatch_mean("kl_loss"), "frac_reward_zero_std": compared.flat}
    of_steps = taken.tally.metrics() | optimizer_step.metrics() | taken.metrics()
    return episode_metrics(batch, ref_BT, kl_coef) | of_steps | of_groups
