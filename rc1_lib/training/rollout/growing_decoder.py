"""One causal model of transformers, fed with rows that come and go and end at one slot."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rc1_lib.training.rollout.decoder import Decoder
from rc1_lib.training.rollout.growing_cache import GrowingCache, order_after


class GrowingDecoder(Decoder):
    """A model and caches that are as long as their longest row."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int) -> None:
        """Takes a causal model in evaluation mode, see `decoding`, and the number of rows under way at most."""
        super().__init__(model, pad_id)
        self._room = rows
        self._live = GrowingCache(0, self._device)
        self._aside: list[GrowingCache] = []

    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """See `Decoder.step`."""
        return self._feed(self._live, [[token] for token in tokens], positions)

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """See `Decoder.admit`."""
        fresh = GrowingCache(len(prompts), self._device)
        logits_BV = self._feed(fresh, prompts, [0] * len(prompts))
        self._enter(fresh)
        return logits_BV

    def part(self, kept: list[int], aside: list[int]) -> list[int]:
        """See `Decoder.part`."""
        if aside:
            self._aside.append(self._live.take(aside))
        order = order_after(self._live.rows, kept)
        self._live.keep(kept)
        return order

    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """See `Decoder.resume`."""
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
        """Feed tokens after each row's; the logits after each row's last one."""
        lengths = [len(each) for each in tokens]
        width = max(lengths)
        # The padding comes last, where nothing that counts can see it, and is taken out of the cache again.
        last_B = self._tensor(lengths) - 1
        offsets_BT = torch.minimum(torch.arange(width, device=self._device), last_B[:, None])
        logits_BV = self._forward(
            self._padded(tokens),
            last_B,
            attention_mask=cache.mask(width),
            position_ids=self._tensor(positions)[:, None] + offsets_BT,
            past_key_values=cache,
        )
        cache.align([width - length for length in lengths])
        return logits_BV
