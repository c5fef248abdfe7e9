"""One iteration of DPO whose loss is TRL's: pair the takes by their scores, then epochs of minibatches of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Protocol

import torch
from torch import Tensor

from rc1_lib.config_updates import TrlDPO
from rc1_lib.errors import RC1Error
from rc1_lib.training.dpo.pairs import Pair, pairs_of
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.micro_batches import micro_batches, minibatch_rows
from rc1_lib.training.updates.stepper import Gradients, Stepper

FIGURES = (
    "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected",
)  # fmt: skip
"""What TRL measures of pairs, each a mean over them."""
Seen = list[tuple[int, dict[str, float]]]
"""Of every forward pass how many pairs it had, and means over them."""


class PairLoss(Protocol):
    """TRL's loss, and what it measures on the way."""

    def loss_of(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """The mean loss of the pairs in `inputs` (see `inputs_of`), and `FIGURES`, means over them."""
        ...


def trl_dpo_update(
    losses: PairLoss,
    batch: EpisodeBatch,
    stepper: Stepper,
    section: TrlDPO,
    generator: torch.Generator,
    shards: Shards = ONE,
) -> dict[str, float]:
    """Learns from the pairs of an iteration whose two takes scored differently.

    Args:
        losses: over the policy that `stepper` steps.
        batch: on the policy's device; takes of one row are one group.
        stepper: around the optimizer.
        section: of the configuration.
        generator: on the CPU; deals pairs to minibatches.
        shards: how learning is dealt out, by pairs. Every process that has a share calls this with the same arguments.

    Returns:
        `loss` and `FIGURES`, means over the pairs as they were learned from (0 without one), `pairs/differ`, and the
        stepper's metrics.

    Raises:
        RC1Error: when no prompt has two scored takes.
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    found = pairs_of(batch.scores, batch.groups)
    if not found:
        raise RC1Error("no prompt of this step has two scored takes, so there is no pair to learn from")
    pairs = [pair for pair in found if pair.differ]
    seen: Seen = []
    for some in _minibatches(pairs, section, generator):
        seen += _gradients_of(losses, batch, some, stepper, section.micro_tokens, shards)
        stepper.step()
    learned = sum(count for count, _ in seen)
    means = {
        name: sum(count * figures[name] for count, figures in seen) / learned if learned else 0.0
        for name in ("loss", *FIGURES)
    }
    return means | stepper.metrics() | {"pairs/differ": fmean(pair.differ for pair in found)}


def inputs_of(batch: EpisodeBatch, pairs: Sequence[Pair]) -> dict[str, Tensor]:
    """Pairs as TRL's loss takes them: the chosen takes and then the rejected, only the policy's own tokens learned."""
    rows_b = torch.tensor([*(pair.chosen for pair in pairs), *(pair.rejected for pair in pairs)])
    rows_b = rows_b.to(batch.ids.device)
    longest = int(batch.lengths[rows_b].max())
    place_t = torch.arange(longest, device=batch.ids.device)
    return {
        "input_ids": batch.ids[rows_b, :longest],
        "attention_mask": (place_t[None] < batch.lengths[rows_b, None]).long(),
        "completion_mask": batch.own[rows_b, :longest].long(),
    }


def _minibatches(pairs: Sequence[Pair], section: TrlDPO, generator: torch.Generator) -> Iterator[list[Pair]]:
    """The pairs of every step of the optimizer; none where there is no pair to learn from."""
    for _ in range(section.epochs if pairs else 0):
        for numbers in minibatch_rows(len(pairs), min(section.minibatches, len(pairs)), generator):
            yield [pairs[number] for number in numbers]


def _gradients_of(
    losses: PairLoss, batch: EpisodeBatch, some: Sequence[Pair], stepper: Stepper, micro_tokens: int, shards: Shards
) -> Seen:
    """Accumulates the gradients of the mean loss of some pairs."""
    lengths = [2 * int(batch.lengths[[pair.chosen, pair.rejected]].max()) for pair in some]
    parts, mine = shards.deal(range(len(some)), lengths), dict[int, tuple[Seen, Gradients]]()
    for shard in shards.mine:
        seen: Seen = []
        for part in micro_batches(parts[shard], lengths, micro_tokens):
            with span(Part.FORWARD):
                loss, figures = losses.loss_of(inputs_of(batch, [some[number] for number in part]))
            with span(Part.BACKWARD):
                stepper.scale(loss * (len(part) / len(some))).backward()  # type: ignore[no-untyped-call]
            seen.append((len(part), {"loss": float(loss.detach()), **figures}))
        mine[shard] = seen, stepper.taken()
    together: Seen = []
    for seen, gradients in shards.exchange(mine):
        together += seen
        stepper.add(gradients)
    return together
