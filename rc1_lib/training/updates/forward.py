"""Forward passes over a batch: hidden states and log-probabilities of action tokens, in fp32 or wider."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.policy import Policy
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
from rc1_lib.training.updates.batch import EpisodeBatch, TokenBatch, micro_batches


def token_logprobs(logits_NV: Tensor, tokens_N: Tensor, temperature: float) -> Tensor:
    """Compute the log-probabilities (N,) of tokens under the tempered distribution.

    Args:
        logits_NV: (N, V), any floating type.
        tokens_N: int64 (N,).
        temperature: above 0.
    """
    return log_distribution(logits_NV, temperature).gather(1, tokens_N[:, None])[:, 0]


def log_distribution(logits_NV: Tensor, temperature: float) -> Tensor:
    """Compute the log-probabilities (N, V) of all tokens. Half precision is widened to fp32 before the softmax."""
    wide_NV = logits_NV.float() if logits_NV.dtype in (torch.bfloat16, torch.float16) else logits_NV
    return torch.log_softmax(wide_NV if temperature == 1 else wide_NV / temperature, dim=-1)


def entropy(log_distribution_NV: Tensor) -> Tensor:
    """Compute entropies (N,) in nats from log-probabilities (N, V), none of which may be minus infinity."""
    return -(log_distribution_NV.exp() * log_distribution_NV).sum(dim=-1)


HEAD_TOKENS = 256
"""Action tokens whose logits are held at once: few enough for (N, V) numbers to stay near a CPU's cache."""


@dataclass(frozen=True, slots=True)
class ActionTokens:
    """N action tokens in some rows of a batch.

    Attributes:
        inputs: int64 (b, t), the rows without the last column, because their last action token is predicted and never
            fed.
        states: int64 (N,), for each action token the index of the state before it in the flattened (b * t) states.
        rows: int64 (N,), row of each action token in the whole batch.
        steps: int64 (N,), position of each action token in its row.
    """

    inputs: Tensor
    states: Tensor
    rows: Tensor
    steps: Tensor

    def of(self, field_BT: Tensor) -> Tensor:
        """Select from a (B, T) tensor of the whole batch the values (N,) at these action tokens."""
        return field_BT[self.rows, self.steps]

    def hidden(self, policy: Policy) -> Tensor:
        """Compute the states (N, D) before the action tokens. Only these are projected to the vocabulary."""
        # A causal model never attends to the right, so right padding needs no mask, and attention is faster without
        # one.
        hidden_btD = policy.hidden(self.inputs)
        return hidden_btD.flatten(0, 1).index_select(0, self.states)

    def chunks(self) -> Iterator[slice]:
        """Yield slices of at most `HEAD_TOKENS` action tokens."""
        for start in range(0, len(self.rows), HEAD_TOKENS):
            yield slice(start, start + HEAD_TOKENS)


def action_tokens(batch: TokenBatch, rows: Sequence[int]) -> ActionTokens:
    """Find the action tokens of some rows of a batch."""
    rows_b = torch.tensor(rows, device=batch.ids.device)
    longest = int(batch.lengths[rows_b].max())
    in_part, steps = batch.action_mask[rows_b, :longest].nonzero(as_tuple=True)
    inputs = batch.ids[rows_b, : longest - 1]
    return ActionTokens(inputs, in_part * (longest - 1) + steps - 1, rows_b[in_part], steps)


def logprobs_of(policy: Policy, batch: TokenBatch, tokens: ActionTokens, temperature: float) -> Tensor:
    """Compute the log-probabilities (N,) of action tokens under the current policy."""
    hidden_ND, tokens_N = tokens.hidden(policy), tokens.of(batch.ids)
    parts = [token_logprobs(policy.logits(hidden_ND[part]), tokens_N[part], temperature) for part in tokens.chunks()]
    return torch.cat(parts)


def policy_logprobs(
    policy: Policy,
    batch: TokenBatch,
    rows: Sequence[int],
    *,
    micro_tokens: int,
    temperature: float,
    shards: Shards = ONE_SHARD,
    section: Section = Section.FORWARD,
) -> Tensor:
    """Compute the log-probabilities (B, T) of some rows' action tokens under the current policy, without gradients.

    They are 0 everywhere else.

    Args:
        policy: not changed.
        batch: on the policy's device.
        rows: rows to process.
        micro_tokens: padded tokens of one forward pass.
        temperature: of the log-probabilities.
        shards: how the work is divided.
        section: profiler section of the time spent.
    """

    def read(tokens: ActionTokens) -> Tensor:
        return logprobs_of(policy, batch, tokens, temperature)

    found = _gathered(batch, rows, read, micro_tokens, shards, section)
    dtype = found[0][1].dtype if found else None
    found_BT = torch.zeros(batch.ids.shape, dtype=dtype, device=batch.ids.device)
    for tokens, logprobs_N in found:
        found_BT[tokens.rows, tokens.steps] = logprobs_N
    return found_BT


def reference_logprobs(
    policy: Policy, batch: EpisodeBatch, *, micro_tokens: int, temperature: float, shards: Shards = ONE_SHARD
) -> Tensor:
    """Compute the log-probabilities (B, T) of all action tokens under the reference, see `policy_logprobs`."""
    with policy.reference():
        found_BT = policy_logprobs(
            policy, batch, range(len(batch)),
            micro_tokens=micro_tokens, temperature=temperature, shards=shards, section=Section.REFERENCE,
        )  # fmt: skip
    return found_BT.to(batch.old_logprobs.dtype)


def states_before(policy: Policy, batch: TokenBatch, *, micro_tokens: int, shards: Shards = ONE_SHARD) -> Tensor:
    """Compute the states (N, D) before all action tokens under the current policy, row by row, without gradients."""
    found = _gathered(
        batch, range(len(batch)), lambda tokens: tokens.hidden(policy), micro_tokens, shards, Section.REFERENCE
    )
    states_ND = found[0][1].new_empty((batch.action_count, found[0][1].shape[1]))
    place_BT = batch.action_mask.flatten().cumsum(0).view_as(batch.action_mask) - 1
    for tokens, states_nD in found:
        states_ND[place_BT[tokens.rows, tokens.steps]] = states_nD
    return states_ND


def _gathered(
    batch: TokenBatch,
    rows: Sequence[int],
    read: Callable[[ActionTokens], Tensor],
    micro_tokens: int,
    shards: Shards,
    section: Section,
) -> list[tuple[ActionTokens, Tensor]]:
    """Apply `read` to every micro-batch of this process's shards, and gather the results of all shards."""
    lengths = batch.lengths.tolist()
    tokens = [
        [action_tokens(batch, part) for part in micro_batches(rows_of_shard, lengths, micro_tokens)]
        for rows_of_shard in shards.split(rows, lengths)
    ]
    with torch.no_grad(), timed(section):
        mine = {shard: [read(each) for each in tokens[shard]] for shard in shards.mine}
    found = itertools.chain(*shards.all_gather(mine))
    return list(zip(itertools.chain(*tokens), found, strict=True))
