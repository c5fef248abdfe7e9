"""Reading an iteration's episodes once more: with the reference, and with the policy where its states were not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import EpisodeBatch, TokenBatch
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.logprobs import token_logprobs
from rc1_lib.training.updates.micro_batches import micro_batches
from rc1_lib.training.updates.own_tokens import OwnTokens, own_tokens


@dataclass(frozen=True, slots=True)
class ForwardOptions:
    """How episodes are read.

    Attributes:
        micro_tokens: padded tokens of one forward pass.
        temperature: that log-probabilities are taken under.
        states: whether the policy reads too, for the states before own tokens.
    """

    micro_tokens: int
    temperature: float
    states: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading came to.

    Attributes:
        ref_logprobs: (B, T), of the sampled tokens under the reference; 0 where not own.
        states: (N, D), before the own tokens under the policy, row by row; None where they were not asked for.
    """

    ref_logprobs: Tensor
    states: Tensor | None


@dataclass(frozen=True, slots=True)
class _Read:
    """What reading the rows of a shard came to, at its n own tokens."""

    rows: Tensor
    steps: Tensor
    ref_logprobs: Tensor
    states: Tensor | None


def read_episodes(policy: PolicyLike, batch: EpisodeBatch, options: ForwardOptions, shards: Shards = ONE) -> Reading:
    """Read the whole batch; no gradients.

    Args:
        policy: not moved.
        batch: on the policy's device.
        options: how it is read.
        shards: how the reading is dealt out.
    """
    ref_BT = torch.zeros_like(batch.old_logprobs)
    place_BT = batch.own.flatten().cumsum(0).view_as(batch.own) - 1
    states_ND: Tensor | None = None
    parts = shards.deal(range(len(batch)), batch.lengths.tolist())
    with torch.no_grad():
        read = shards.all_gather({shard: _read(policy, batch, parts[shard], options) for shard in shards.mine})
        for one in filter(None, read):
            ref_BT[one.rows, one.steps] = one.ref_logprobs.to(ref_BT.dtype)
            if one.states is not None:
                if states_ND is None:
                    states_ND = one.states.new_empty((batch.own_tokens, one.states.shape[1]))
                states_ND[place_BT[one.rows, one.steps]] = one.states
    return Reading(ref_BT, states_ND)


def _read(policy: PolicyLike, batch: EpisodeBatch, rows: Sequence[int], options: ForwardOptions) -> _Read | None:
    """Read some rows; None without rows."""
    if not rows:
        return None
    parts = micro_batches(rows, batch.lengths.tolist(), options.micro_tokens)
    owns = [own_tokens(batch, part) for part in parts]
    with span(Part.REFERENCE):
        states_nD = torch.cat([own.hidden(policy) for own in owns]) if options.states else None
    with span(Part.REFERENCE), policy.reference():
        ref_n = torch.cat([logprobs_of(policy, batch, own, options.temperature) for own in owns])
    return _Read(torch.cat([own.rows for own in owns]), torch.cat([own.steps for own in owns]), ref_n, states_nD)


def episode_logprobs(
    policy: PolicyLike, batch: EpisodeBatch, rows: Sequence[int], options: ForwardOptions, shards: Shards = ONE
) -> Tensor:
    """Log-probability (B,) of all own tokens of some episodes under the policy as it stands, 0 of the others."""
    return policy_logprobs(policy, batch, rows, options, shards).sum(dim=1)


def policy_logprobs(
    policy: PolicyLike, batch: TokenBatch, rows: Sequence[int], options: ForwardOptions, shards: Shards = ONE
) -> Tensor:
    """Log-probabilities (B, T) of the own tokens of some episodes under the policy as it stands, 0 elsewhere.

    Args:
        policy: not moved.
        batch: on the policy's device.
        rows: the episodes.
        options: how they are read.
        shards: how the reading is dealt out.
    """
    lengths = batch.lengths.tolist()
    parts, mine = shards.deal(rows, lengths), dict[int, list[tuple[OwnTokens, Tensor]]]()
    with torch.no_grad(), span(Part.FORWARD):
        for shard in shards.mine:
            owns = [own_tokens(batch, part) for part in micro_batches(parts[shard], lengths, options.micro_tokens)]
            mine[shard] = [(own, logprobs_of(policy, batch, own, options.temperature)) for own in owns]
    found = [each for read in shards.all_gather(mine) for each in read]
    dtype = found[0][1].dtype if found else None
    found_BT = torch.zeros(batch.ids.shape, dtype=dtype, device=batch.ids.device)
    for own, logprobs_N in found:
        found_BT[own.rows, own.steps] = logprobs_N
    return found_BT


def logprobs_of(policy: PolicyLike, batch: TokenBatch, own: OwnTokens, temperature: float) -> Tensor:
    """Log-probabilities (N,) of the own tokens under the policy as it stands."""
    hidden_ND, tokens_N = own.hidden(policy), own.of(batch.ids)
    parts = [token_logprobs(policy.logits(hidden_ND[part]), tokens_N[part], temperature) for part in own.chunks()]
    return torch.cat(parts)
