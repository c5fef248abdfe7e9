"""One causal model of transformers, fed with rows that come and go and end at one slot.

All rows end at the same slot and begin where their length puts them, so a row that joins late is as good as one that
was there from the start, and what stays is not copied when rows join or leave. `DynamicCache` of transformers joins all
slots with a new one at every step. Here the slots are doubled when they run out, so a step writes one slot and returns
views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from rc1_lib.training.rollout.decoder import Decoder, order_after

LEAST_ROOM = 32
"""Slots that are allocated ahead at least, so that a short prompt does not grow at every other step."""


class GrowingLayer(CacheLayerMixin):
    """Keys and values of one layer.

    Attributes:
        buffers: keys and values [rows allocated, heads, slots allocated, D], of which a part is in use.
        rows: rows in use, the first ones of the buffers.
        start, end: slots in use.
    """

    is_sliding = False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.buffers: list[Tensor] = []
        self.rows = self.start = self.end = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room for rows that begin."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.rows = key_states.shape[0]
        self.buffers = [
            _zeros(states, self.rows, max(LEAST_ROOM, 2 * states.shape[2])) for states in (key_states, value_states)
        ]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the new slots [rows, heads, Q, D] after the others and return views of all in use."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.end + key_states.shape[2]
        if end > self.slots:
            self.reserve(self.room, before=0, after=max(end - self.end, self.end - self.start))
            end = self.end + key_states.shape[2]
        for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[: self.rows, :, self.end : end] = states
        self.end = end
        keys, values = self.used()
        return keys, values

    @property
    def room(self) -> int:
        """Rows allocated."""
        return self.buffers[0].shape[0]

    @property
    def slots(self) -> int:
        """Slots allocated."""
        return self.buffers[0].shape[2]

    def used(self) -> list[Tensor]:
        """The parts of the buffers that are in use."""
        return [buffer[: self.rows, :, self.start : self.end] for buffer in self.buffers]

    def reserve(self, rows: int, *, before: int, after: int) -> None:
        """Move into buffers with room for `rows` rows, `before` slots before those in use and `after` after them."""
        width = self.end - self.start
        moved = [_zeros(states, rows, before + width + after) for states in self.buffers]
        for buffer, states in zip(moved, self.used(), strict=True):
            buffer[: self.rows, :, before : before + width] = states
        self.buffers = moved
        self.start, self.end = before, before + width

    def copied(self, buffers: list[Tensor]) -> GrowingLayer:
        """A layer like this one whose slots are those of `buffers`, all in use."""
        layer = GrowingLayer()
        layer.dtype, layer.device, layer.is_initialized = self.dtype, self.device, True
        layer.buffers, layer.rows, layer.end = buffers, buffers[0].shape[0], buffers[0].shape[2]
        return layer

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Slots that the next `query_length` tokens see, and the first of them."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Slots in use."""
        return self.end - self.start

    def get_max_length(self) -> int:
        """No bound."""
        return -1


def _zeros(like: Tensor, rows: int, slots: int) -> Tensor:
    """Zeros, since slots that are masked still meet a weight of 0, and 0 times what was never written may be NaN."""
    return like.new_zeros((rows, like.shape[1], slots, like.shape[3]))


class GrowingCache(Cache):
    """The layers of a model, and where each row begins."""

    def __init__(self, rows: int, device: torch.device) -> None:
        """An empty cache for `rows` rows."""
        super().__init__(layer_class_to_replicate=GrowingLayer)
        self._pads = torch.zeros(rows, dtype=torch.long, device=device)

    @property
    def rows(self) -> int:
        """Rows in use."""
        return len(self._pads)

    def mask(self, new: int) -> Tensor:
        """Which slots each row may see when `new` tokens are fed: bool [B, slots in use + new]."""
        slots = torch.arange(self.get_seq_length() + new, device=self._pads.device)
        return slots >= self._pads[:, None]

    def take(self, rows: list[int]) -> GrowingCache:
        """A cache of its own with copies of some rows."""
        chosen = self._index(rows)
        taken = GrowingCache(0, self._pads.device)
        taken._pads = self._pads[chosen]
        taken.layers += [layer.copied([states[chosen] for states in layer.used()]) for layer in self._grown]
        taken._give_up_unseen()
        return taken

    def keep(self, kept: list[int]) -> None:
        """Go on with the rows `kept` (increasing) alone.

        Rows from the end take the places of those that left, so only as many rows are copied as leave. The order of
        the rows becomes that of `order_after(rows, kept)`. Slots in which no row that stays has a token are given up.
        """
        order = order_after(self.rows, kept)
        moved = [place for place, row in enumerate(order) if place != row]
        to, source = self._index(moved), self._index([order[place] for place in moved])
        self._pads = self._pads[self._index(order)]
        for layer in self._grown:
            if moved:
                for states in layer.used():
                    states[to] = states[source]
            layer.rows = len(order)
        self._give_up_unseen()

    def align(self, tails: list[int]) -> None:
        """Give up the last `tails[i]` slots of each row, so that all rows end at the same slot again."""
        if not any(tails):
            return
        tails_B = self._index(tails)
        slots = torch.arange(self.get_seq_length(), device=self._pads.device)
        # Slots that are shifted in from before the start are padding; which ones they copy does not matter.
        source_BT = (slots - tails_B[:, None]).clamp(min=0)
        rows_B1 = torch.arange(self.rows, device=self._pads.device)[:, None]
        shifted = [
            layer.copied([states.transpose(1, 2)[rows_B1, source_BT].transpose(1, 2) for states in layer.used()])
            for layer in self._grown
        ]
        self.layers[:] = shifted
        self._pads = self._pads + tails_B
        self._give_up_unseen()

    def join(self, other: GrowingCache, rows: int) -> None:
        """Take in the rows of `other` after those here; where rows are short, room is made for `rows` in all."""
        width, coming = self.get_seq_length(), other.get_seq_length()
        lacking = max(0, coming - width)
        for mine, theirs in zip(self._grown, other._grown, strict=True):
            together = mine.rows + theirs.rows
            if together > mine.room or lacking > mine.start:
                # With slots to spare in front: rows that join later are often longer.
                spare = max(LEAST_ROOM, width // 2)
                mine.reserve(max(together, rows), before=lacking + spare, after=spare)
            mine.start -= lacking
            for buffer, states in zip(mine.buffers, theirs.used(), strict=True):
                buffer[mine.rows : together, :, mine.end - coming : mine.end] = states
            mine.rows = together
        self._pads = torch.cat((self._pads + lacking, other._pads + max(0, width - coming)))

    @staticmethod
    def joined(parts: list[GrowingCache], after: int) -> GrowingCache:
        """The rows of all parts, which are used up, with room for `after` slots more."""
        whole, *others = parts
        rows = sum(part.rows for part in parts)
        widest = max(part.get_seq_length() for part in parts)
        for layer in whole._grown:
            layer.reserve(rows, before=widest - layer.get_seq_length(), after=after)
        for other in others:
            whole.join(other, rows)
        return whole

    def _give_up_unseen(self) -> None:
        unseen = int(self._pads.min()) if self.rows else 0
        self._pads = self._pads - unseen
        for layer in self._grown:
            layer.start += unseen

    def _index(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._pads.device)

    @property
    def _grown(self) -> list[GrowingLayer]:
        return cast("list[GrowingLayer]", self.layers)


class GrowingDecoder(Decoder):
    """A model and caches that are as long as their longest row."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int) -> None:
        """Takes a causal model, fed inside `running`, and the number of rows under way at most."""
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
