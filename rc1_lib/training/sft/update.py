"""One iteration of supervised training: epochs of minibatches of demonstrations."""

from __future__ import annotations

import torch

from rc1_lib.config.updates import Update
from rc1_lib.training.ranks.shards import Shards
from rc1_lib.training.sft.lesson import SFTLesson
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import TokenBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.stepper import Stepper
from rc1_lib.training.updates.take_steps import check_still, dealt, gradients_of
from rc1_lib.training.updates.tally import Tally


def sft_update(
    policy: PolicyLike,
    batch: TokenBatch,
    stepper: Stepper,
    section: Update,
    generator: torch.Generator,
    shards: Shards,
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

    Returns:
        The sums over all own tokens, as they were before the step on them.

    Raises:
        DivergedError: when the loss or its gradients are not finite and no scaler is there to skip the step.
    """
    check_still(policy)
    tally = Tally()
    for rows in dealt(len(batch), section, generator):
        lesson = SFTLesson(batch, section, int(batch.own[rows].sum()))
        tally.absorb(gradients_of(policy, lesson, rows, stepper, shards))
        with span(Part.OPTIMIZER):
            stepper.step()
    return tally
