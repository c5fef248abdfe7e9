"""One iteration of DPO whose loss is TRL's: pair the takes by their scores, then epochs of minibatches of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from rc1_lib.config.updates import TrlDPO
from rc1_lib.errors import RC1Error
from rc1_lib.training.device import to_device
from rc1_lib.training.dpo.pairs import Pair, pairs_of, share_that_differ
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.micro_batches import micro_batches, minibatch_rows
from rc1_lib.training.updates.parity import distance, farther
from rc1_lib.training.updates.stepper import Gradients, Stepper

FIGURES = (
    "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected",
)  # fmt: skip
"""What TRL measures of pairs, each a mean over them."""


class Logprobs(NamedTuple):
    """Log-probabilities of own tokens at temperature 1, the only one that TRL knows; both of the same shape."""

    policy: Tensor
    reference: Tensor


ReadRows = Callable[[Sequence[int]], Logprobs]
"""Episodes of a batch -> (B, T), as they are read without TRL; 0 of other episodes and where not own."""


@dataclass(frozen=True, slots=True)
class PairsRead:
    """TRL's loss of some pairs, and what it found on the way.

    Attributes:
        loss: their mean, to go backward from.
        figures: `FIGURES`, means over them.
        logprobs: (N,), of the own tokens of the chosen takes and then of the rejected, as its passes read them.
    """

    loss: Tensor
    figures: Mapping[str, float]
    logprobs: Logprobs


class PairLoss(Protocol):
    """TRL's loss over a policy."""

    def read(self, inputs: Mapping[str, Tensor]) -> PairsRead:
        """The loss of the pairs in `inputs` (see `inputs_of`)."""
        ...


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a forward pass came to.

    Attributes:
        pairs: of it.
        figures: means over them.
        theirs: (N,) on the CPU, as TRL read the own tokens before the first step; None behind it.
        ours: (N,), as they are read without it.
    """

    pairs: int
    figures: Mapping[str, float]
    theirs: Logprobs | None = None
    ours: Logprobs | None = None


def trl_dpo_update(
    losses: PairLoss,
    batch: EpisodeBatch,
    stepper: Stepper,
    section: TrlDPO,
    generator: torch.Generator,
    read_rows: ReadRows,
    shards: Shards = ONE,
) -> dict[str, float]:
    """Learns from the pairs of an iteration whose two takes scored differently.

    Args:
        losses: over the policy that `stepper` steps.
        batch: on the policy's device; takes of one row are one group.
        stepper: around the optimizer.
        section: of the configuration.
        generator: on the CPU; deals pairs to minibatches.
        read_rows: of the policy as it stands, and of the reference; every process calls it.
        shards: how learning is dealt out, by pairs. Every process that has a share calls this with the same arguments.

    Returns:
        `loss` and `FIGURES`, means over the pairs as they were learned from (0 without one), those of
        `share_that_differ`, the stepper's metrics, and `policy/sampling_gap` and `policy/sampling_far` (0 without a
        pair): how far TRL's own passes, from which is learned, are from `read_rows` on the first minibatch, of the
        policy's pass and the reference's the one that is farther off.

    Raises:
        RC1Error: when no prompt has two scored takes.
        DivergedError: when gradients are not finite and no scaler is there to skip the step.
    """
    found = pairs_of(batch.scores, batch.groups)
    if not found:
        raise RC1Error("no prompt of this step has two scored takes, so there is no pair to learn from")
    pairs = [pair for pair in found if pair.differ]
    seen: list[_Seen] = []
    for some in _minibatches(pairs, section, generator):
        expected = None if seen else read_rows([row for pair in some for row in (pair.chosen, pair.rejected)])
        seen += _gradients_of(losses, batch, some, stepper, section.micro_tokens, expected, shards)
        stepper.step()
    learned = sum(one.pairs for one in seen)
    means = {
        name: sum(one.pairs * one.figures[name] for one in seen) / learned if learned else 0.0
        for name in ("loss", *FIGURES)
    }
    return means | stepper.metrics() | _apart(seen) | share_that_differ(found)


def _apart(seen: Sequence[_Seen]) -> dict[str, float]:
    """How far what was learned from is from what was read without TRL."""
    both = [(one.theirs, one.ours) for one in seen if one.theirs is not None and one.ours is not None]
    nothing = torch.zeros(1)
    policy, reference = (
        distance(
            torch.cat([ours[which] for _, ours in both] or [nothing]),
            torch.cat([theirs[which] for theirs, _ in both] or [nothing]),
        )
        for which in range(2)
    )
    return farther(policy, reference)


def inputs_of(batch: EpisodeBatch, pairs: Sequence[Pair]) -> dict[str, Tensor]:
    """Pairs as TRL's loss takes them: the chosen takes and then the rejected, only the policy's own tokens learned."""
    rows_b = torch.tensor([*(pair.chosen for pair in pairs), *(pair.rejected for pair in pairs)])
    rows_b = to_device(rows_b, batch.ids.device)
    ids_bt, own_bt, mask_bt = batch.cut(rows_b)
    return {"input_ids": ids_bt, "attention_mask": mask_bt, "completion_mask": own_bt.long()}


def _kept(
    theirs: Logprobs, expected: Logprobs | None, batch: EpisodeBatch, pairs: Sequence[Pair]
) -> tuple[Logprobs, Logprobs] | tuple[()]:
    """What TRL read of the own tokens of some pairs, and what was expected, in the order of `inputs_of`."""
    if expected is None:
        return ()
    rows_b = torch.tensor([*(pair.chosen for pair in pairs), *(pair.rejected for pair in pairs)])
    rows_b = to_device(rows_b, batch.own.device)
    own_bt = batch.own[rows_b]
    ours = Logprobs(*(each_BT[rows_b][own_bt].cpu() for each_BT in expected))
    return Logprobs(*(each_N.float().cpu() for each_N in theirs)), ours


def _minibatches(pairs: Sequence[Pair], section: TrlDPO, generator: torch.Generator) -> Iterator[list[Pair]]:
    """The pairs of every step of the optimizer; none where there is no pair to learn from."""
    for _ in range(section.epochs if pairs else 0):
        for numbers in minibatch_rows(len(pairs), min(section.minibatches, len(pairs)), generator):
            yield [pairs[number] for number in numbers]


def _gradients_of(
    losses: PairLoss,
    batch: EpisodeBatch,
    some: Sequence[Pair],
    stepper: Stepper,
    micro_tokens: int,
    expected: Logprobs | None,
    shards: Shards,
) -> list[_Seen]:
    """Accumulates the gradients of the mean loss of some pairs; `expected` (B, T) is kept beside what was read."""
    lengths = [2 * int(batch.lengths[[pair.chosen, pair.rejected]].max()) for pair in some]
    parts, mine = shards.deal(range(len(some)), lengths), dict[int, tuple[list[_Seen], Gradients]]()
    for shard in shards.mine:
        seen: list[_Seen] = []
        for part in micro_batches(parts[shard], lengths, micro_tokens):
            pairs = [some[number] for number in part]
            with span(Part.FORWARD):
                read = losses.read(inputs_of(batch, pairs))
            with span(Part.BACKWARD):
                stepper.scale(read.loss * (len(part) / len(some))).backward()  # type: ignore[no-untyped-call]
            figures = {"loss": float(read.loss.detach()), **read.figures}
            seen.append(_Seen(len(part), figures, *_kept(read.logprobs, expected, batch, pairs)))
        mine[shard] = seen, stepper.taken()
    together: list[_Seen] = []
    for seen, gradients in shards.exchange(mine):
        together += seen
        stepper.add(gradients)
    return together
