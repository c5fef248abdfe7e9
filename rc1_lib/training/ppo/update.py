"""One iteration of PPO: score the episodes, then epochs of minibatches of micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import nn
from torch.optim import Optimizer

from rc1_lib.training.ppo.batch import PPOBatch
from rc1_lib.training.ppo.gradients import Lesson, add_gradients
from rc1_lib.training.ppo.interface import PolicyLike
from rc1_lib.training.ppo.metrics import Tally, objective_metrics
from rc1_lib.training.ppo.micro_batches import micro_batches, minibatch_rows
from rc1_lib.training.ppo.own_tokens import own_tokens
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.stepper import Gradients, Stepper
from rc1_lib.training.ppo.targets import targets_of
from rc1_lib.training.ppo.value_fit import fit_values
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.spans import Part, span


def ppo_update(
    policy: PolicyLike,
    batch: PPOBatch,
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
    value head alone. Before each step the mean KL between the policy as sampled and now is looked at on its
    minibatch: beyond `kl_stop` the update ends without that step. Behind it all the value head alone may go over the
    batch again, see `fit_values`.

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
        Metrics by name, see `metrics`; beside them `grad_norm` (mean before clipping), `update/steps`, `update/stopped`
        (1 when the KL ended the update) and `policy/sampling_gap`, the mean absolute log-ratio before the first step: 0
        where sampling and learning agree on what a token's probability is.

    Raises:
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    assert not any(
        isinstance(module, nn.Dropout) and module.training and module.p > 0 for module in policy.modules()
    ), "dropout is active: ratios would compare two draws of it"
    targets = targets_of(policy, batch, settings, kl_coef, shards)
    stepper = Stepper(optimizer, settings.ppo.max_grad_norm, scaler)
    lesson = Lesson(
        batch=batch,
        targets=targets,
        settings=settings,
        normaliser=batch.own_tokens / settings.ppo.minibatches,
        frozen=iteration < settings.ppo.value_warm_up,
    )
    tally, gap, stopped = Tally(), math.nan, False
    for rows in _minibatches(len(batch), settings, generator):
        seen = _gradients_of(policy, lesson, rows, stepper, shards)
        if not tally.minibatches:
            gap = seen.mean("gap")
        tally.absorb(seen)
        stopped = seen.mean("approxkl") > settings.ppo.kl_stop
        if stopped:
            stepper.drop()
            break
        with span(Part.OPTIMIZER):
            stepper.step()
    head = Stepper(optimizer, settings.ppo.max_grad_norm, scaler)
    with span(Part.VALUES):
        fit_values(
            policy.value_head, targets.states, targets.returns[batch.own], head, settings.ppo.value_epochs, generator
        )
    update = {"update/stopped": float(stopped), "policy/sampling_gap": gap}
    return objective_metrics(batch, targets, kl_coef) | tally.metrics() | stepper.metrics() | update


def _minibatches(rows: int, settings: PPOSettings, generator: torch.Generator) -> Iterator[list[int]]:
    """The minibatches of all epochs, each epoch dealt anew."""
    for _ in range(settings.ppo.epochs):
        yield from minibatch_rows(rows, settings.ppo.minibatches, generator)


def _gradients_of(policy: PolicyLike, lesson: Lesson, rows: list[int], stepper: Stepper, shards: Shards) -> Tally:
    """Accumulates the gradients of a minibatch, shard by shard, and one micro-batch at a time in each."""
    lengths = lesson.batch.lengths.tolist()
    parts, mine = shards.deal(rows, lengths), dict[int, tuple[Tally, Gradients]]()
    for shard in shards.mine:
        seen = Tally()
        for part in micro_batches(parts[shard], lengths, lesson.settings.ppo.micro_tokens):
            own = own_tokens(lesson.batch, part)
            seen.add(add_gradients(policy, lesson, own, stepper.scale), len(own.rows))
        mine[shard] = seen, stepper.taken()
    whole = Tally()
    for seen, gradients in shards.exchange(mine):
        whole.add_up(seen)
        stepper.add(gradients)
    return whole
