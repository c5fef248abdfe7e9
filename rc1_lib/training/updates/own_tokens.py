"""One forward pass: rows of a batch trimmed to their longest, and where the policy's tokens lie in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.updates.batch import TokenBatch
from rc1_lib.training.updates.interface import PolicyLike

HEAD_TOKENS = 256
"""Own tokens whose logits are held at once: few enough for (N, V) numbers to stay near a CPU's cache."""


@dataclass(frozen=True, slots=True)
class OwnTokens:
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

    def hidden(self, policy: PolicyLike) -> Tensor:
        """The states (N, D) before the own tokens, and only those: no other is worth a projection to the vocabulary."""
        # A causal model never looks right of a token, so right padding needs no mask, and attention is faster without.
        hidden_btD = policy.hidden(self.inputs)
        return hidden_btD.flatten(0, 1).index_select(0, self.states)

    def chunks(self) -> Iterator[slice]:
        """The own tokens in runs of at most `HEAD_TOKENS`."""
        for start in range(0, len(self.rows), HEAD_TOKENS):
            yield slice(start, start + HEAD_TOKENS)


def own_tokens(batch: TokenBatch, rows: Sequence[int]) -> OwnTokens:
    """The own tokens of some rows of a batch."""
    rows_b = torch.tensor(rows, device=batch.ids.device)
    longest = int(batch.lengths[rows_b].max())
    in_part, steps = batch.own[rows_b, :longest].nonzero(as_tuple=True)
    inputs = batch.ids[rows_b, : longest - 1]
    return OwnTokens(inputs, in_part * (longest - 1) + steps - 1, rows_b[in_part], steps)
