"""PPO on a causal language model with an adapter and a value head: the engine `torch_ppo`, alias `trl_ppo`.

One update: compute advantages, train on minibatches (each in micro-batches), then fit the value head alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from transformers import PreTrainedModel

from rc1_lib.config.updates import PPO, Update
from rc1_lib.training.api import Setup
from rc1_lib.training.device import to_device
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.policy import Policy, ValuedPolicy
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
from rc1_lib.training.updates import losses
from rc1_lib.training.updates.batch import EpisodeBatch, minibatch_rows
from rc1_lib.training.updates.forward import ActionTokens, entropy, log_distribution, reference_logprobs, states_before
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.metrics import episode_metrics, explained_variance
from rc1_lib.training.updates.take_steps import OptimizerStep, take_steps


class TorchPPO(PolicyEngine):
    """The engine `torch_ppo`."""

    policy: ValuedPolicy
    needs_states: ClassVar[bool] = True

    def _create_policy(self, setup: Setup, base: PreTrainedModel) -> None:
        config, ppo = setup.config, setup.config.training.ppo
        self.policy = ValuedPolicy(base, setup.model.lora, self.seed)
        self.optimizer = AdamW(
            [
                {"params": self.policy.adapter_parameters(), "lr": config.lr},
                {"params": list(self.policy.value_head.parameters()), "lr": ppo.value_lr},
            ],
            weight_decay=0.0,
        )
        self._settings = PPOSettings(config.training.update, ppo, config.clip, self.temperature)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Do one update from the batch's `trajectories` and `scores`; `step` is the number of finished steps."""
        rate = self.optimizer.param_groups[1]["lr"]
        return {**super().train_step(batch), "lr/value": rate}

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        return ppo_update(
            self.policy, batch, self.optimizer, self._settings,
            kl_coef=kl_coef, iteration=iteration, generator=self._minibatch_rng, scaler=self._scaler,
            shards=self._shards,
        )  # fmt: skip

    def _evaluate(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        targets = targets_of(self.policy, batch, self._settings, kl_coef)
        return objective_metrics(batch, targets, kl_coef)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every engine, and `value_head`."""
        head = {name: value.detach().clone() for name, value in self.policy.value_head.state_dict().items()}
        return {**super().state_dict(), "value_head": head}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        self.policy.value_head.load_state_dict(state["value_head"])


VALUE_COEF = 0.5
"""Weight of the value loss in the policy's gradients. `training.ppo.value_lr` decides how fast the head learns."""


@dataclass(frozen=True, slots=True)
class PPOSettings:
    """Settings of an update. The KL coefficient is separate, because a controller may change it.

    Attributes:
        update: the section of the configuration that all engines share.
        ppo: PPO's own section.
        clip: how far the ratio may move from 1 before its gradient is cut, above 0.
        temperature: sampling temperature, above 0; all log-probabilities use it.
    """

    update: Update
    ppo: PPO
    clip: float
    temperature: float

    def __post_init__(self) -> None:
        """Reject settings with which nothing can be learned, including NaN."""
        for name in ("clip", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"PPO setting '{name}' is {getattr(self, name)}, expected above 0")


@dataclass(frozen=True, slots=True)
class Targets:
    """Constants of an update; all but `states` are (B, T) and 0 outside the action mask.

    Attributes:
        ref_logprobs: of the sampled tokens under the reference.
        values: of the state before each action token, under the sampling policy.
        rewards: score and KL penalty per token.
        advantages: whitened.
        returns: targets of the values.
        states: (N, D), hidden states before the action tokens, row by row.
    """

    ref_logprobs: Tensor
    values: Tensor
    rewards: Tensor
    advantages: Tensor
    returns: Tensor
    states: Tensor


def targets_of(
    policy: ValuedPolicy, batch: EpisodeBatch, settings: PPOSettings, kl_coef: float, shards: Shards = ONE_SHARD
) -> Targets:
    """Compute values, rewards, advantages and returns with the policy as it is and the reference; no gradients.

    If the batch keeps the hidden states from sampling, the policy need not process the episodes again.

    Args:
        policy: not changed.
        batch: on the policy's device.
        settings: of the update.
        kl_coef: KL coefficient.
        shards: how the forward passes are divided.
    """
    micro_tokens, states_ND = settings.update.micro_tokens, batch.states
    if states_ND is None:
        states_ND = states_before(policy, batch, micro_tokens=micro_tokens, shards=shards)
    ref_BT = reference_logprobs(
        policy, batch, micro_tokens=micro_tokens, temperature=settings.temperature, shards=shards
    )
    values_BT = torch.zeros_like(batch.old_logprobs)
    with torch.no_grad():
        values_BT[batch.action_mask] = policy.value_head(states_ND).to(values_BT.dtype)
    rewards_BT = losses.token_rewards(
        batch.scores - batch.expected, losses.kl_k1(batch.old_logprobs, ref_BT), batch.action_mask, kl_coef
    )
    advantages_BT, returns_BT = losses.generalised_advantages(
        rewards_BT, values_BT, batch.action_mask, lam=settings.ppo.lam
    )
    advantages_BT = losses.whiten(advantages_BT, batch.action_mask)
    return Targets(ref_BT, values_BT, rewards_BT, advantages_BT, returns_BT, states_ND)


@dataclass(frozen=True, slots=True)
class PPOObjective:
    """The objective of one update (see `rc1_lib.training.updates.take_steps`).

    Attributes:
        value_head: trained along with the policy.
        batch: all episodes.
        targets: of the batch.
        settings: of the update.
        normaliser: average number of action tokens per optimizer step; every step divides by it.
        frozen: whether only the value head learns.
    """

    value_head: nn.Module
    batch: EpisodeBatch
    targets: Targets
    settings: PPOSettings
    normaliser: float
    frozen: bool

    @property
    def update(self) -> Update:
        """The section of the configuration."""
        return self.settings.update

    def fields(self, tokens: ActionTokens) -> dict[str, Tensor]:
        """Return the sampled tokens with their old log-probabilities, and the targets."""
        return {
            "actions": tokens.of(self.batch.ids),
            "old_logprobs": tokens.of(self.batch.old_logprobs),
            "advantages": tokens.of(self.targets.advantages),
            "returns": tokens.of(self.targets.returns),
        }

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Compute policy and value losses of a chunk of states, and measure its entropy."""
        settings, normaliser = self.settings, self.normaliser
        with torch.set_grad_enabled(not self.frozen):
            log_p_nV = log_distribution(policy.logits(states_nD), settings.temperature)
            logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
            surrogate = losses.policy_loss(
                logprobs_n, field_n["old_logprobs"], field_n["advantages"], clip=settings.clip, normaliser=normaliser
            )
        with torch.no_grad():
            measured = {"entropy": entropy(log_p_nV).sum()}
        worth = losses.value_loss(self.value_head(states_nD), field_n["returns"], normaliser=normaliser)
        loss = surrogate.loss + VALUE_COEF * worth.loss
        return Loss(loss, {"loss": loss.detach(), **surrogate.sums, **measured, **worth.sums})


def objective_metrics(batch: EpisodeBatch, targets: Targets, kl_coef: float) -> dict[str, float]:
    """Return metrics of the episodes, of the reward less the KL penalty (as in TRL), and of the values.

    `critic/vf_explained_var` is NaN if all returns are equal.
    """
    found = episode_metrics(batch, targets.ref_logprobs, kl_coef)
    values, returns = targets.values[batch.action_mask], targets.returns[batch.action_mask]
    penalty = -kl_coef * found["objective/kl"]
    return found | {
        "objective/non_score_reward": penalty,
        "objective/rlhf_reward": found["objective/scores"] + penalty,
        "critic/vf_explained_var": explained_variance(values, returns),
    }


def ppo_update(
    policy: ValuedPolicy,
    batch: EpisodeBatch,
    optimizer: Optimizer,
    settings: PPOSettings,
    *,
    kl_coef: float,
    iteration: int,
    generator: torch.Generator,
    scaler: torch.amp.GradScaler | None = None,
    shards: Shards = ONE_SHARD,
) -> dict[str, float]:
    """Learn from the episodes of one iteration.

    The old log-probabilities are those of sampling; values and the reference's log-probabilities are computed here.
    Every loss is a sum over action tokens, divided by the average number of action tokens per minibatch, so neither the
    micro-batches nor the padding change what is learned. The first `value_warm_up` iterations train only the value
    head. After the steps, the value head alone may go over the batch again, see `fit_values`.

    Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017).

    Args:
        policy: updated in place; without active dropout.
        batch: on the policy's device, at least as many episodes as minibatches.
        optimizer: over the policy's trainable parameters, including those of the value head.
        settings: of the update.
        kl_coef: KL coefficient, at least 0; at 0 the KL is still reported.
        iteration: number of this iteration, from 0.
        generator: on the CPU; shuffles rows into minibatches.
        scaler: gradient scaler for fp16; it skips a step whose gradients are not finite.
        shards: how the work is divided. Every process calls this with the same arguments and ends with the same bits.

    Returns:
        `objective_metrics`, and those of tokens, value head, optimizer steps and `UpdateResult`.

    Raises:
        DivergedError: if, without a gradient scaler, a gradient is not finite.
    """
    targets = targets_of(policy, batch, settings, kl_coef, shards)
    update, optimizer_step = settings.update, OptimizerStep(optimizer, settings.update.max_grad_norm, scaler)
    objective = PPOObjective(
        value_head=policy.value_head,
        batch=batch,
        targets=targets,
        settings=settings,
        normaliser=batch.action_count / update.minibatches,
        frozen=iteration < settings.ppo.value_warm_up,
    )
    minibatches = minibatch_rows(len(batch), update.minibatches, generator)
    taken = take_steps(policy, objective, minibatches, update.kl_stop, optimizer_step, shards)
    head = OptimizerStep(optimizer, update.max_grad_norm, scaler)
    with timed(Section.VALUES):
        returns_N = targets.returns[batch.action_mask]
        fit_values(policy.value_head, targets.states, returns_N, head, settings.ppo.value_epochs, generator)
    tally = taken.tally
    of_values = {"loss/value_avg": tally.minibatch_mean("value_loss")}
    of_steps = tally.metrics() | of_values | optimizer_step.metrics() | taken.metrics()
    return objective_metrics(batch, targets, kl_coef) | of_steps


TOKENS = 1024
"""States in one step. States of one episode are much alike, so small steps would oscillate."""


def fit_values(
    head: nn.Module,
    states_ND: Tensor,
    returns_N: Tensor,
    optimizer_step: OptimizerStep,
    epochs: int,
    generator: torch.Generator,
) -> None:
    """Fit the value head to the returns by least squares, in passes over all states in random order.

    The steps it takes together with the policy are too few to learn which prompts are hard. Once the baseline knows,
    the advantages measure only what the policy did. The states are fixed: the policy's own weights do not change. The
    next iteration, with new episodes, uses the head.

    Args:
        head: maps states (n, D) to values (n,); updated in place.
        states_ND: of action tokens.
        returns_N: targets of the values.
        optimizer_step: over an optimizer with the head's parameters; parameters without a gradient do not change.
        epochs: number of passes; 0 does nothing.
        generator: on the CPU; draws one permutation per pass.
    """
    for _ in range(epochs):
        order_N = to_device(torch.randperm(len(returns_N), generator=generator), states_ND.device)
        for part in torch.split(order_N, TOKENS):
            loss = 0.5 * (head(states_ND[part]) - returns_N[part]).square().mean()
            optimizer_step.scale(loss).backward()  # type: ignore[no-untyped-call]
            optimizer_step.step()
