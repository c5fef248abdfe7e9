"""The optimizer's steps of one update: minibatches of micro-batches, each shard's by itself, until the KL ends them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from rc1_lib.config.updates import Steps
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.gradients import add_gradients
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.micro_batches import micro_batches, minibatch_rows
from rc1_lib.training.updates.objective import EpisodeObjective, Objective
from rc1_lib.training.updates.optimizer_step import Gradients, OptimizerStep
from rc1_lib.training.updates.own_tokens import own_tokens
from rc1_lib.training.updates.tally import Tally


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What the steps came to.

    Attributes:
        tally: of all minibatches that were looked at.
        gap: mean absolute log-ratio before the first step: 0 where sampling and learning agree on what a token's
            probability is.
        far: share of tokens before the first step whose log-ratio is beyond `losses.FAR`.
        stopped: whether the KL ended the update.
    """

    tally: Tally
    gap: float
    far: float
    stopped: bool

    def metrics(self) -> dict[str, float]:
        """`update/stopped` (1 when the KL ended the update), `policy/sampling_gap` and `policy/sampling_far`."""
        return {
            "update/stopped": float(self.stopped),
            "policy/sampling_gap": self.gap,
            "policy/sampling_far": self.far,
        }


def take_steps(
    policy: PolicyLike,
    objective: EpisodeObjective,
    minibatches: Iterable[Sequence[int]],
    optimizer_step: OptimizerStep,
    shards: Shards,
) -> UpdateResult:
    """Goes over the minibatches, a step of the optimizer each.

    Before each step the mean KL between the policy as sampled and now is looked at on its minibatch: beyond `kl_stop`
    the update ends without that step.

    Args:
        policy: stepped in place; without active dropout.
        objective: what is to be learned.
        minibatches: rows of the objective's batch.
        optimizer_step: over the policy's trainable parameters.
        shards: how learning is dealt out. Every process that has a share calls this with the same arguments, and all
            end with the same bits.

    Raises:
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    check_still(policy)
    tally, gap, far, stopped = Tally(), math.nan, math.nan, False
    for rows in minibatches:
        seen = gradients_of(policy, objective, rows, optimizer_step, shards)
        if not tally.minibatches:
            gap, far = seen.mean("gap"), seen.mean("far")
        tally.absorb(seen)
        stopped = seen.mean("approxkl") > objective.update.kl_stop
        if stopped:
            optimizer_step.drop()
            break
        with span(Part.OPTIMIZER):
            optimizer_step.step()
    return UpdateResult(tally, gap, far, stopped)


def dealt(rows: int, update: Steps, generator: torch.Generator) -> Iterator[list[int]]:
    """The minibatches of all epochs; every epoch deals its own."""
    for _ in range(update.epochs):
        yield from minibatch_rows(rows, update.minibatches, generator)


def check_still(policy: PolicyLike) -> None:
    """Nothing random may be active in the policy."""
    assert not any(
        isinstance(module, nn.Dropout) and module.training and module.p > 0 for module in policy.modules()
    ), "dropout is active: ratios would compare two draws of it"


def gradients_of(
    policy: PolicyLike, objective: Objective, rows: Sequence[int], optimizer_step: OptimizerStep, shards: Shards
) -> Tally:
    """Accumulates the gradients of a minibatch, shard by shard, and one micro-batch at a time in each.

    Args:
        policy: whose gradients grow.
        objective: what is to be learned.
        rows: the minibatch.
        optimizer_step: over the policy's trainable parameters.
        shards: how learning is dealt out.

    Returns:
        The sums over the minibatch's own tokens.
    """
    lengths = objective.batch.lengths.tolist()
    parts, mine = shards.deal(rows, lengths), dict[int, tuple[Tally, Gradients]]()
    for shard in shards.mine:
        seen = Tally()
        for part in micro_batches(parts[shard], lengths, objective.update.micro_tokens):
            own = own_tokens(objective.batch, part)
            seen.add(add_gradients(policy, objective, own, optimizer_step.scale), len(own.rows))
        mine[shard] = seen, optimizer_step.taken()
    whole = Tally()
    for seen, gradients in shards.all_gather(mine):
        whole.add_up(seen)
        optimizer_step.add(gradients)
    return whole
