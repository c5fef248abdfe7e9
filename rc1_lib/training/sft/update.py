"""One iteration of supervised training: epochs of minibatches of demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from rc1_lib.config.updates import Steps
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.sft.lesson import SFTLesson
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import TokenBatch
from rc1_lib.training.updates.gradients import add_gradients
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.own_tokens import OwnTokens
from rc1_lib.training.updates.stepper import Stepper
from rc1_lib.training.updates.take_steps import check_still, dealt, gradients_of
from rc1_lib.training.updates.tally import Tally

Read = Callable[[SFTLesson, OwnTokens, Callable[[Tensor], Tensor]], Mapping[str, Tensor]]
"""Adds the gradients of a micro-batch of a lesson and gives the sums over its own tokens, `nats` and `right` at
least."""


def sft_update(
    policy: PolicyLike,
    batch: TokenBatch,
    stepper: Stepper,
    section: Steps,
    generator: torch.Generator,
    shards: Shards,
    read: Read | None = None,
) -> Tally:
    """Learns a step's demonstrations; the loss of a minibatch is the mean over its own tokens.

    Args:
        policy: stepped in place; without active dropout.
        batch: on the policy's device.
        stepper: over the policy's trainable parameters.
        section: of the configuration.
        generator: on the CPU; deals demonstrations to minibatches.
        shards: how learning is dealt out. Every process that has a share calls this with the same arguments, and all
            end with the same bits.
        read: how gradients come about where the loss is not RC1's own.

    Returns:
        The sums over all own tokens, as they were before the step on them.

    Raises:
        DivergedError: when the loss or its gradients are not finite and no scaler is there to skip the step.
    """
    check_still(policy)
    tally = Tally()
    for rows in dealt(len(batch), section, generator):
        lesson = SFTLesson(batch, section, int(batch.own[rows].sum()))
        go_over = partial(add_gradients, policy, lesson) if read is None else partial(read, lesson)
        tally.absorb(gradients_of(lesson, rows, stepper, shards, go_over))
        with span(Part.OPTIMIZER):
            stepper.step()
    return tally
