"""PPO on a causal model with an adapter and a value head: the engine `torch_ppo`, also called `trl_ppo`.

One step: score the episodes' tokens, then epochs of minibatches of micro-batches, then the value head alone.
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
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates import losses
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.forward import ActionTokens, entropy, log_distribution, reference_logprobs, states_before
from rc1_lib.training.updates.losses import Loss
from rc1_lib.training.updates.metrics import episode_metrics, explained_variance
from rc1_lib.training.updates.take_steps import OptimizerStep, dealt, take_steps


class TorchPPO(PolicyEngine):
    """The engine `torch_ppo`."""

    policy: ValuedPolicy
    needs_states: ClassVar[bool] = True

    def _begin(self, setup: Setup, base: PreTrainedModel) -> None:
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
        """One update from the batch's `trajectories` and `scores`; `step` counts the finished ones."""
        rate = self.optimizer.param_groups[1]["lr"]
        return {**super().train_step(batch), "lr/value": rate}

    def _update(self, batch: EpisodeBatch, kl_coef: float, iteration: int) -> dict[str, float]:
        return ppo_update(
            self.policy, batch, self.optimizer, self._settings,
            kl_coef=kl_coef, iteration=iteration, generator=self._dealer, scaler=self._scaler, shards=self._shards,
        )  # fmt: skip

    def _look(self, batch: EpisodeBatch, kl_coef: float) -> dict[str, float]:
        targets = targets_of(self.policy, batch, self._settings, kl_coef)
        return objective_metrics(batch, targets, kl_coef)

    def state_dict(self) -> dict[str, Any]:
        """That of every such engine, and `value_head`."""
        head = {name: value.detach().clone() for name, value in self.policy.value_head.state_dict().items()}
        return {**super().state_dict(), "value_head": head}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        self.policy.value_head.load_state_dict(state["value_head"])


GAMMA = 1.0
"""Discount per token: an episode is paid at its end, and a long answer shall not count less than a short one."""
VALUE_CLIP = 1e9
"""Clipping range of a value around the one before the update, too wide to act: a range that suits the returns of one
configuration would hold the values of another one back."""
VALUE_COEF = 0.5
"""Weight of the value loss: what reaches the policy of it; how fast the head learns is `training.ppo.value_lr`."""


@dataclass(frozen=True, slots=True)
class PPOSettings:
    """What one update does; the KL coefficient is apart, since a controller may move it.

    Attributes:
        update: the section of the configuration that all engines share.
        ppo: PPO's own section.
        clip: how far the ratio may go from 1 before its gradient ends, above 0.
        temperature: the temperature tokens were sampled at, above 0; all log-probabilities are taken under it.
        gamma: see `GAMMA`, above 0 and at most 1.
        value_clip: see `VALUE_CLIP`, above 0.
    """

    update: Update
    ppo: PPO
    clip: float
    temperature: float
    gamma: float = GAMMA
    value_clip: float = VALUE_CLIP

    def __post_init__(self) -> None:
        """Refuses settings under which nothing can be learned; NaN is one."""
        for name in ("clip", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"PPO setting '{name}' is {getattr(self, name)}, expected above 0")


@dataclass(frozen=True, slots=True)
class Targets:
    """Constants of an update, all (B, T) and 0 outside of the action mask.

    Attributes:
        ref_logprobs: of the sampled tokens under the reference.
        values: of the state before each own token, under the policy as sampled.
        rewards: score and KL price per token.
        advantages: whitened if the settings say so.
        returns: what values should have been.
        states: (N, D), the states before the own tokens, row by row.
    """

    ref_logprobs: Tensor
    values: Tensor
    rewards: Tensor
    advantages: Tensor
    returns: Tensor
    states: Tensor


def targets_of(
    policy: ValuedPolicy, batch: EpisodeBatch, settings: PPOSettings, kl_coef: float, shards: Shards = ONE
) -> Targets:
    """Scores the batch with the policy as it is and with the reference; no gradients.

    Where the batch holds the states that its tokens were sampled from, the policy need not read the episodes again.

    Args:
        policy: not moved.
        batch: on the policy's device.
        settings: of the update.
        kl_coef: price of a nat of KL to the reference.
        shards: how the reading is dealt out.
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
        batch.scores, losses.kl_k1(batch.old_logprobs, ref_BT), batch.action_mask, kl_coef
    )
    advantages_BT, returns_BT = losses.generalised_advantages(
        rewards_BT, values_BT, batch.action_mask, gamma=settings.gamma, lam=settings.ppo.lam
    )
    if settings.ppo.whiten:
        advantages_BT = losses.whiten(advantages_BT, batch.action_mask)
    return Targets(ref_BT, values_BT, rewards_BT, advantages_BT, returns_BT, states_ND)


@dataclass(frozen=True, slots=True)
class PPOObjective:
    """The objective of one update, see `rc1_lib.training.updates.take_steps`.

    Attributes:
        value_head: learns next to the policy.
        batch: all episodes.
        targets: of the batch.
        settings: of the update.
        normaliser: own tokens of one optimizer step, the same number for each.
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
        """What was sampled, and the targets."""
        return {
            "actions": tokens.of(self.batch.ids),
            "old_logprobs": tokens.of(self.batch.old_logprobs),
            "advantages": tokens.of(self.targets.advantages),
            "old_values": tokens.of(self.targets.values),
            "returns": tokens.of(self.targets.returns),
        }

    def loss(self, policy: Policy, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
        """Policy, entropy and value loss of a chunk of states together."""
        settings, normaliser = self.settings, self.normaliser
        with torch.set_grad_enabled(not self.frozen):
            log_p_nV = log_distribution(policy.logits(states_nD), settings.temperature)
            logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
            surrogate = losses.policy_loss(
                logprobs_n, field_n["old_logprobs"], field_n["advantages"], clip=settings.clip, normaliser=normaliser
            )
        # Where the bonus weighs nothing the entropy is measured without a graph over the whole vocabulary.
        with torch.set_grad_enabled(not self.frozen and settings.update.entropy_coef > 0):
            bonus = losses.entropy_loss(entropy(log_p_nV), normaliser=normaliser)
        values_n, old_values_n, returns_n = self.value_head(states_nD), field_n["old_values"], field_n["returns"]
        worth = losses.value_loss(values_n, old_values_n, returns_n, clip=settings.value_clip, normaliser=normaliser)
        loss = surrogate.loss + settings.update.entropy_coef * bonus.loss + VALUE_COEF * worth.loss
        return Loss(loss, {"loss": loss.detach(), **surrogate.sums, **bonus.sums, **worth.sums})


def objective_metrics(batch: EpisodeBatch, targets: Targets, kl_coef: float) -> dict[str, float]:
    """Those of the episodes, and `critic/vf_explained_var`, which is NaN where all returns are equal."""
    values, returns = targets.values[batch.action_mask], targets.returns[batch.action_mask]
    explained = {"critic/vf_explained_var": explained_variance(values, returns)}
    return episode_metrics(batch, targets.ref_logprobs, kl_coef) | explained


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
    shards: Shards = ONE,
) -> dict[str, float]:
    """Learns from the episodes of one iteration.

    The old log-probabilities are those the tokens were sampled with; values and the reference's log-probabilities are
    computed here. Every loss is a sum over own tokens divided by one number, the batch's own tokens per minibatch, so
    neither the micro-batches nor the padding change what is learned. The first `value_warm_up` iterations train the
    value head alone. After the steps the value head alone may go over the batch again, see `fit_values`.

    Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017).

    Args:
        policy: stepped in place; without active dropout.
        batch: on the policy's device, at least as many episodes as minibatches.
        optimizer: over the policy's trainable parameters, those of the value head included; stepped in place.
        settings: of the update.
        kl_coef: price of a nat of KL to the reference, at least 0; at 0 the KL is still reported.
        iteration: number of this iteration, from 0.
        generator: on the CPU; deals rows to minibatches.
        scaler: for fp16 only; a step whose gradients are not finite is then skipped, as it does.
        shards: how reading and learning are dealt out. Every process that has a share calls this with the same
            arguments, and all end with the same bits.

    Returns:
        `objective_metrics`, and those of the tally, the value head, the optimizer's steps and `UpdateResult`.

    Raises:
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
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
    taken = take_steps(policy, objective, dealt(len(batch), update, generator), update.kl_stop, optimizer_step, shards)
    head = OptimizerStep(optimizer, update.max_grad_norm, scaler)
    with timed(Section.VALUES):
        returns_N = targets.returns[batch.action_mask]
        fit_values(policy.value_head, targets.states, returns_N, head, settings.ppo.value_epochs, generator)
    tally = taken.tally
    of_values = {"loss/value_avg": tally.each("value_loss"), "val/clipfrac_avg": tally.mean("value_clipped")}
    of_steps = tally.metrics() | of_values | optimizer_step.metrics() | taken.metrics()
    return objective_metrics(batch, targets, kl_coef) | of_steps


TOKENS = 1024
"""States of one step: many from one episode say the same, so few at a time would pull to and fro."""


def fit_values(
    head: nn.Module,
    states_ND: Tensor,
    returns_N: Tensor,
    optimizer_step: OptimizerStep,
    epochs: int,
    generator: torch.Generator,
) -> None:
    """Fits the head by least squares to the returns of states, in passes over all of them in random order.

    A baseline that knows which prompts are hard takes that from the advantages, and what is left is what the policy
    did. The few steps it takes next to the policy are too few to learn it. The states are fixed: the policy's own
    weights are not moved, and the next iteration, whose episodes are others, uses the head.

    Args:
        head: states (n, D) to values (n,); stepped in place.
        states_ND: of own tokens.
        returns_N: what each should have been worth.
        optimizer_step: over an optimizer that holds the head's parameters; parameters without gradient are left alone.
        epochs: passes; 0 does nothing.
        generator: on the CPU; moved on by one permutation a pass.
    """
    for _ in range(epochs):
        order_N = to_device(torch.randperm(len(returns_N), generator=generator), states_ND.device)
        for part in torch.split(order_N, TOKENS):
            loss = 0.5 * (head(states_ND[part]) - returns_N[part]).square().mean()
            optimizer_step.scale(loss).backward()  # type: ignore[no-untyped-call]
            optimizer_step.step()
