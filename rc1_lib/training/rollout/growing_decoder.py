"""One causal model of transformers, fed with rows that come and go and end at one slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from rc1_lib.training.rollout.growing_cache import GrowingCache, order_after


class GrowingDecoder:
    """A model, the cache of the rows that it writes, and those of rows that are set aside."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int) -> None:
        """Takes a causal model in evaluation mode, see `decoding`, and the number of rows under way at most."""
        self._model, self._pad_id, self._room = model, pad_id, rows
        self._device = model.device
        self._live = GrowingCache(0, self._device)
        self._aside: list[GrowingCache] = []
        self._last: tuple[Tensor, Tensor] | None = None
        self._states_BD: Tensor | None = None

    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Feed one token to every live row and return the logits after it: [B, V]."""
        return self._feed(self._live, [[token] for token in tokens], positions)

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read prompts as new rows behind the live ones and return the logits after each: [B, V]."""
        fresh = GrowingCache(len(prompts), self._device)
        logits_BV = self._feed(fresh, prompts, [0] * len(prompts))
        self._enter(fresh)
        return logits_BV

    def part(self, kept: list[int], aside: list[int]) -> list[int]:
        """Go on with the live rows `kept`, set those in `aside` aside in this order, and drop all others.

        Returns:
            Which of the old live rows stands in each place now.
        """
        if aside:
            self._aside.append(self._live.take(aside))
        order = order_after(self._live.rows, kept)
        self._live.keep(kept)
        return order

    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to all rows aside, which become live behind the others, and return the logits: [B, V].

        Args:
            tokens: of each row, in the order in which they were set aside; not all of one length.
            positions: of the first of them.
        """
        merged = GrowingCache.joined(self._aside, after=max(map(len, tokens)))
        self._aside = []
        logits_BV = self._feed(merged, tokens, positions)
        self._enter(merged)
        return logits_BV

    def _enter(self, cache: GrowingCache) -> None:
        if self._live.rows:
            self._live.join(cache, self._room)
        else:
            self._live = cache

    def _feed(self, cache: GrowingCache, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens behind each row's; the logits after each row's last one."""
        lengths = [len(each) for each in tokens]
        width = max(lengths)
        # The padding stands behind, where nothing that counts can see it, and is taken out of the cache again.
        ids_BT = self._tensor([[*each, *[self._pad_id] * (width - len(each))] for each in tokens])
        last_B = self._tensor(lengths) - 1
        offsets_BT = torch.minimum(torch.arange(width, device=self._device), last_B[:, None])
        self._last = (torch.arange(len(tokens), device=self._device), last_B)
        logits: Tensor = self._model(
            input_ids=ids_BT,
            attention_mask=cache.mask(width),
            position_ids=self._tensor(positions)[:, None] + offsets_BT,
            past_key_values=cache,
            use_cache=True,
        ).logits
        cache.align([width - length for length in lengths])
        return logits[:, 0]

    def last_only(self, head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave only each row's last position to the vocabulary projection, the dearest of all layers."""
        assert self._last is not None, "the model is only run by this decoder while the hook is on"
        hidden_BTD: Tensor = inputs[0]
        self._states_BD = hidden_BTD[self._last]
        return (self._states_BD[:, None], *inputs[1:])

    def states(self) -> Tensor:
        """The hidden states that the last logits were made of: [B, D]."""
        assert self._states_BD is not None, "nothing was fed yet"
        return self._states_BD

    def _tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)
