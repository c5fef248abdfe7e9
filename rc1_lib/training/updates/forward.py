"""Forward passes over a batch: the policy, its own tokens in a few rows, and their log-probabilities, fp32 or wider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.policy import Policy
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.updates.batch import EpisodeBatch, TokenBatch, micro_batches


def token_logprobs(logits_NV: Tensor, tokens_N: Tensor, temperature: float) -> Tensor:
    """Log-probabilities (N,) of tokens under the tempered distribution.

    Args:
        logits_NV: (N, V), any floating type.
        tokens_N: int64 (N,).
        temperature: above 0.
    """
    return log_distribution(logits_NV, temperature).gather(1, tokens_N[:, None])[:, 0]


def log_distribution(logits_NV: Tensor, temperature: float) -> Tensor:
    """Log-probabilities (N, V) of all tokens; half precision is widened to fp32 before anything is summed."""
    wide_NV = logits_NV.float() if logits_NV.dtype in (torch.bfloat16, torch.float16) else logits_NV
    return torch.log_softmax(wide_NV if temperature == 1 else wide_NV / temperature, dim=-1)


def entropy(log_distribution_NV: Tensor) -> Tensor:
    """Entropies (N,) in nats of distributions given as log-probabilities (N, V), none of them minus infinity."""
    return -(log_distribution_NV.exp() * log_distribution_NV).sum(dim=-1)


HEAD_TOKENS = 256
"""Own tokens whose logits are held at once: few enough for (N, V) numbers to stay near a CPU's cache."""


@dataclass(frozen=True, slots=True)
class ActionTokens:
    """Rows of a batch, N own tokens among them.

    Attributes:
        inputs: int64 (b, t), the rows up to the token before the longest row's last: the last own token is predicted,
            never read.
        states: int64 (N,), for each own token the place of the state before it in the flattened (b * t) states.
        rows: int64 (N,), row of each own token in the whole batch.
        steps: int64 (N,), position of each own token in its row.
    """

    inputs: Tensor
    states: Tensor
    rows: Tensor
    steps: Tensor

    def of(self, field_BT: Tensor) -> Tensor:
        """The numbers (N,) of a (B, T) tensor of the whole batch at these own tokens."""
        return field_BT[self.rows, self.steps]

    def hidden(self, policy: Policy) -> Tensor:
        """The states (N, D) before the own tokens, and only those: no other is worth a projection to the vocabulary."""
        # A causal model never looks right of a token, so right padding needs no mask, and attention is faster without.
        hidden_btD = policy.hidden(self.inputs)
        return hidden_btD.flatten(0, 1).index_select(0, self.states)

    def chunks(self) -> Iterator[slice]:
        """The own tokens in runs of at most `HEAD_TOKENS`."""
        for start in range(0, len(self.rows), HEAD_TOKENS):
            yield slice(start, start + HEAD_TOKENS)


def action_tokens(batch: TokenBatch, rows: Sequence[int]) -> ActionTokens:
    """The own tokens of some rows of a batch."""
    rows_b = torch.tensor(rows, device=batch.ids.device)
    longest = int(batch.lengths[rows_b].max())
    in_part, steps = batch.action_mask[rows_b, :longest].nonzero(as_tuple=True)
    inputs = batch.ids[rows_b, : longest - 1]
    return ActionTokens(inputs, in_part * (longest - 1) + steps - 1, rows_b[in_part], steps)


def logprobs_of(policy: Policy, batch: TokenBatch, tokens: ActionTokens, temperature: float) -> Tensor:
    """Log-probabilities (N,) of the own tokens under the current policy."""
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
    shards: Shards = ONE,
    section: Section = Section.FORWARD,
) -> Tensor:
    """Log-probabilities (B, T) of the own tokens of some rows under the current policy, 0 elsewhere; no gradients.

    Args:
        policy: not moved.
        batch: on the policy's device.
        rows: those that are read.
        micro_tokens: padded tokens of one forward pass.
        temperature: that log-probabilities are taken under.
        shards: how the reading is dealt out.
        section: of a step, that the time counts as.
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
    policy: Policy, batch: EpisodeBatch, *, micro_tokens: int, temperature: float, shards: Shards = ONE
) -> Tensor:
    """Log-probabilities (B, T) of all own tokens under the reference, see `policy_logprobs`."""
    with policy.reference():
        found_BT = policy_logprobs(
            policy, batch, range(len(batch)),
            micro_tokens=micro_tokens, temperature=temperature, shards=shards, section=Section.REFERENCE,
        )  # fmt: skip
    return found_BT.to(batch.old_logprobs.dtype)


def states_before(policy: Policy, batch: TokenBatch, *, micro_tokens: int, shards: Shards = ONE) -> Tensor:
    """The states (N, D) before all own tokens under the current policy, row by row; no gradients."""
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
    """What reading came to in every micro-batch of every shard."""
    lengths = batch.lengths.tolist()
    dealt, mine = shards.deal(rows, lengths), dict[int, list[tuple[ActionTokens, Tensor]]]()
    with torch.no_grad(), timed(section):
        for shard in shards.mine:
            parts = [action_tokens(batch, part) for part in micro_batches(dealt[shard], lengths, micro_tokens)]
            mine[shard] = [(tokens, read(tokens)) for tokens in parts]
    return [each for found in shards.all_gather(mine) for each in found]
