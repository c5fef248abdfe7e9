"""A KV cache whose rows all end at the same slot; rows can join and leave.

Where a row begins depends on its length, so a row that joins late works like one that was there from the start, and the
remaining rows are not copied when rows join or leave. transformers' `DynamicCache` copies all slots at every step. Here
the buffer is doubled when it is full, so a step writes one slot and returns views.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

LEAST_ROOM = 32
"""Least number of slots allocated ahead, so that short prompts do not need a new buffer at every other step."""


class GrowingLayer(CacheLayerMixin):
    """Keys and values of one layer.

    Attributes:
        buffers: keys and values [rows allocated, heads, slots allocated, D], of which a part is in use.
        rows: number of rows in use, which are the first ones of the buffers.
    """

    is_sliding = False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.buffers: list[Tensor] = []
        self.rows = self.start = self.end = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate buffers for the first rows."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.rows = key_states.shape[0]
        self.buffers = [
            _zeros(states, self.rows, max(LEAST_ROOM, 2 * states.shape[2])) for states in (key_states, value_states)
        ]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the new slots [rows, heads, Q, D] after the others and return views of all slots in use."""
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
        """Number of rows allocated."""
        return self.buffers[0].shape[0]

    @property
    def slots(self) -> int:
        """Number of slots allocated."""
        return self.buffers[0].shape[2]

    def used(self) -> list[Tensor]:
        """Return the parts of the buffers that are in use."""
        return [buffer[: self.rows, :, self.start : self.end] for buffer in self.buffers]

    def reserve(self, rows: int, *, before: int, after: int) -> None:
        """Move to buffers with room for `rows` rows, and for `before` and `after` slots around those in use."""
        width = self.end - self.start
        moved = [_zeros(states, rows, before + width + after) for states in self.buffers]
        for buffer, states in zip(moved, self.used(), strict=True):
            buffer[: self.rows, :, before : before + width] = states
        self.buffers = moved
        self.start, self.end = before, before + width

    def copied(self, buffers: list[Tensor]) -> GrowingLayer:
        """Return a layer like this one with other buffers, all in use."""
        layer = GrowingLayer()
        layer.dtype, layer.device, layer.is_initialized = self.dtype, self.device, True
        layer.buffers, layer.rows, layer.end = buffers, buffers[0].shape[0], buffers[0].shape[2]
        return layer

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of slots that the next `query_length` tokens may see, and the first of them."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Return the number of slots in use."""
        return self.end - self.start

    def get_max_length(self) -> int:
        """Return -1: no bound."""
        return -1


def _zeros(like: Tensor, rows: int, slots: int) -> Tensor:
    """Allocate zeros: masked slots have weight 0, but 0 times uninitialised memory may be NaN."""
    return like.new_zeros((rows, like.shape[1], slots, like.shape[3]))


class GrowingCache(Cache):
    """The layers of a model, and the first slot of each row."""

    def __init__(self, rows: int, device: torch.device) -> None:
        """Create an empty cache for `rows` rows."""
        super().__init__(layer_class_to_replicate=GrowingLayer)
        self._pads = torch.zeros(rows, dtype=torch.long, device=device)

    @property
    def rows(self) -> int:
        """Number of rows in use."""
        return len(self._pads)

    def mask(self, new: int) -> Tensor:
        """Return which slots each row may see when `new` tokens are fed: bool [B, slots in use + new]."""
        slots = torch.arange(self.get_seq_length() + new, device=self._pads.device)
        return slots >= self._pads[:, None]

    def take(self, rows: list[int]) -> GrowingCache:
        """Copy some rows into a new cache."""
        chosen = self._index(rows)
        taken = GrowingCache(0, self._pads.device)
        taken._pads = self._pads[chosen]
        taken.layers += [layer.copied([states[chosen] for states in layer.used()]) for layer in self._grown]
        taken._free_unused_slots()
        return taken

    def keep(self, kept: list[int]) -> None:
        """Keep only the rows `kept` (increasing).

        Rows from the end fill the gaps, so no more rows are copied than leave. The new order is `order_after(rows,
        kept)`. Slots in which no remaining row has a token are freed.
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
        self._free_unused_slots()

    def align(self, tails: list[int]) -> None:
        """Drop the last `tails[i]` slots of each row, so that all rows end at the same slot again."""
        if not any(tails):
            return
        tails_B = self._index(tails)
        slots = torch.arange(self.get_seq_length(), device=self._pads.device)
        # Slots shifted in from before the start are padding, so it does not matter which ones they copy.
        source_BT = (slots - tails_B[:, None]).clamp(min=0)
        rows_B1 = torch.arange(self.rows, device=self._pads.device)[:, None]
        shifted = [
            layer.copied([states.transpose(1, 2)[rows_B1, source_BT].transpose(1, 2) for states in layer.used()])
            for layer in self._grown
        ]
        self.layers[:] = shifted
        self._pads = self._pads + tails_B
        self._free_unused_slots()

    def join(self, other: GrowingCache, rows: int) -> None:
        """Append the rows of `other`. If there is not enough room for them, allocate room for `rows` in all."""
        width, coming = self.get_seq_length(), other.get_seq_length()
        lacking = max(0, coming - width)
        for mine, theirs in zip(self._grown, other._grown, strict=True):
            together = mine.rows + theirs.rows
            if together > mine.room or lacking > mine.start:
                # With spare slots in front, because rows that join later are often longer.
                spare = max(LEAST_ROOM, width // 2)
                mine.reserve(max(together, rows), before=lacking + spare, after=spare)
            mine.start -= lacking
            for buffer, states in zip(mine.buffers, theirs.used(), strict=True):
                buffer[mine.rows : together, :, mine.end - coming : mine.end] = states
            mine.rows = together
        self._pads = torch.cat((self._pads + lacking, other._pads + max(0, width - coming)))

    @staticmethod
    def joined(parts: list[GrowingCache], after: int) -> GrowingCache:
        """Join all parts into the first one, with room for `after` more slots. The parts cannot be used afterwards."""
        whole, *others = parts
        rows = sum(part.rows for part in parts)
        widest = max(part.get_seq_length() for part in parts)
        for layer in whole._grown:
            layer.reserve(rows, before=widest - layer.get_seq_length(), after=after)
        for other in others:
            whole.join(other, rows)
        return whole

    def _free_unused_slots(self) -> None:
        unseen = int(self._pads.min()) if self.rows else 0
        self._pads = self._pads - unseen
        for layer in self._grown:
            layer.start += unseen

    def _index(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._pads.device)

    @property
    def _grown(self) -> list[GrowingLayer]:
        return cast("list[GrowingLayer]", self.layers)


def order_after(rows: int, kept: list[int]) -> list[int]:
    """Return which row is at each place when only `kept` of `rows` rows remain and the last ones fill the gaps."""
    assert kept == sorted(set(kept)), "kept rows must be in increasing order"
    assert not kept or 0 <= kept[0] <= kept[-1] < rows, "a kept row is out of range"
    stay = set(kept)
    fill = [row for row in kept if row >= len(kept)]
    return [place if place in stay else fill.pop() for place in range(len(kept))]
