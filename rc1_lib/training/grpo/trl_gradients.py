"""The gradients of a micro-batch where the loss is TRL's: what stands in the place of `updates.gradients` then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from rc1_lib.training.grpo.lesson import GRPOLesson
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.kl import kl_k3
from rc1_lib.training.updates.losses import clipped_surrogate, entropy_loss
from rc1_lib.training.updates.own_tokens import OwnTokens


@dataclass(frozen=True, slots=True)
class Read:
    """What TRL's loss of some takes is, and what it read on the way; N own tokens among them.

    Attributes:
        loss: a scalar to go backward from.
        logprobs: (N,), of the own tokens under the policy as it stands.
        entropies: (N,), of what they were drawn from.
        kl_weights: (N,), what the KL to the reference was weighed by.
        clipped: the share of tokens (of episodes, where these are clipped as a whole) that the clipping ended.
    """

    loss: Tensor
    logprobs: Tensor
    entropies: Tensor
    kl_weights: Tensor
    clipped: float


class TakesLoss(Protocol):
    """TRL's loss over a policy."""

    def read(self, inputs: Mapping[str, Tensor], beta: float) -> Read:
        """The loss of the takes in `inputs` (see `inputs_of`), a nat of KL to the reference priced at `beta`."""
        ...


def add_trl_gradients(
    losses: TakesLoss, lesson: GRPOLesson, own: OwnTokens, scale: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Goes forward and backward over the own tokens of a micro-batch, by TRL's loss.

    What a token counts is decided for the whole step, as it is for RC1's own loss: TRL's mean over the episodes of a
    pass becomes this pass's share of one over those of an average step.

    Args:
        losses: over the policy whose gradients grow.
        lesson: what is to be learned.
        own: the micro-batch.
        scale: what is done to a loss before going backward; the identity but for fp16.

    Returns:
        The sums over the own tokens that a `Tally` reports, all detached scalars.
    """
    settings, field_N = lesson.settings, lesson.fields(own)
    minibatches = settings.update.minibatches
    rows_b: Tensor = own.rows.unique_consecutive()  # type: ignore[no-untyped-call]
    with span(Part.FORWARD):
        read = losses.read(inputs_of(lesson, rows_b), lesson.kl_coef)
        share = 1.0 if settings.grpo.loss_type == "dapo" else minibatches * len(rows_b) / len(lesson.batch)
        bonus = entropy_loss(read.entropies, normaliser=lesson.batch.own_tokens / minibatches)
        loss = share * read.loss + settings.update.entropy_coef * bonus.loss
    with span(Part.BACKWARD):
        scale(loss).backward()  # type: ignore[no-untyped-call]
    logprobs_N = read.logprobs.detach()
    ratios = clipped_surrogate(
        logprobs_N, field_N["old_logprobs"], field_N["advantages"], low=settings.clip, high=settings.clip_high
    )
    left = (field_N["weights"] * read.kl_weights * kl_k3(logprobs_N, field_N["ref_logprobs"])).sum()
    return {
        **ratios.sums,
        **bonus.sums,
        "clipped": torch.tensor(read.clipped * len(own.rows)),
        "loss": loss.detach(),
        "policy_loss": share * read.loss.detach() - lesson.kl_coef * left,
        "kl_loss": left,
    }


def inputs_of(lesson: GRPOLesson, rows_b: Tensor) -> dict[str, Tensor]:
    """Takes as TRL's loss has them: prompts and completions, of which only the policy's own tokens are learned.

    A completion begins where the first own token of any of the takes stands, so that none needs padding on the left.
    """
    batch = lesson.batch
    ids_bt, own_bt, mask_bt = batch.cut(rows_b)
    start, end = int(own_bt.int().argmax(dim=1).min()), ids_bt.shape[1]
    return {
        "prompt_ids": ids_bt[:, :start],
        "prompt_mask": torch.ones_like(ids_bt[:, :start]),
        "completion_ids": ids_bt[:, start:],
        "completion_mask": mask_bt[:, start:],
        "tool_mask": own_bt[:, start:].long(),
        "advantages": lesson.advantages[rows_b],
        "old_per_token_logps": batch.old_logprobs[rows_b, start:end],
        "ref_per_token_logps": lesson.ref_logprobs[rows_b, start:end],
        "num_items_in_batch": torch.tensor(batch.own_tokens / lesson.settings.update.minibatches),
    }
