"""One iteration of PPO: score the episodes, then epochs of minibatches of micro-batches."""

from __future__ import annotations

import torch
from torch.optim import Optimizer

from rc1_lib.training.ppo.metrics import objective_metrics, update_metrics
from rc1_lib.training.ppo.objective import PPOObjective
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.targets import targets_of
from rc1_lib.training.ppo.value_fit import fit_values
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.interface import ValuedPolicyLike
from rc1_lib.training.updates.optimizer_step import OptimizerStep
from rc1_lib.training.updates.take_steps import dealt, take_steps


def ppo_update(
    policy: ValuedPolicyLike,
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
        Metrics by name, see `metrics`; with them `grad_norm` (mean before clipping), `update/steps` and those of
        `UpdateResult`.

    Raises:
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    targets = targets_of(policy, batch, settings, kl_coef, shards)
    optimizer_step = OptimizerStep(optimizer, settings.update.max_grad_norm, scaler)
    objective = PPOObjective(
        value_head=policy.value_head,
        batch=batch,
        targets=targets,
        settings=settings,
        normaliser=batch.own_tokens / settings.update.minibatches,
        frozen=iteration < settings.ppo.value_warm_up,
    )
    taken = take_steps(policy, objective, dealt(len(batch), settings.update, generator), optimizer_step, shards)
    head = OptimizerStep(optimizer, settings.update.max_grad_norm, scaler)
    with span(Part.VALUES):
        fit_values(
            policy.value_head, targets.states, targets.returns[batch.own], head, settings.ppo.value_epochs, generator
        )
    of_steps = update_metrics(taken.tally) | optimizer_step.metrics() | taken.metrics()
    return objective_metrics(batch, targets, kl_coef) | of_steps
