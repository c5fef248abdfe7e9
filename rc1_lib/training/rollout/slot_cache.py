"""Keys and values in slots that are allocated once: row r's token at position p stands at [r, p], and stays there.

`GrowingCache` lets all rows end at the same slot, so that what is read is as narrow as it can be, and moves when it
grows. Here nothing moves while rows write, so a step of decoding reads and writes the same addresses every time, which
is what a recorded graph needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class SlotLayer(CacheLayerMixin):
    """Keys and values of one layer [rows, heads, slots + 1, D]; the last slot is where what does not count is put."""

    is_sliding = False

    def __init__(self, cache: SlotCache) -> None:
        """A layer of `cache`, which says where tokens are written and how far is read."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache = cache
        self.buffers: list[Tensor] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate for all rows, with the shapes of the first states that come."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.buffers = [self._zeros(states) for states in (key_states, value_states)]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write new states [B, heads, Q, D] where the cache says, and return views of what may be read."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        fed = self._cache.fed
        for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[fed.rows_B1, :, fed.positions_BQ] = states.transpose(1, 2)
        keys, values = (buffer[fed.first : fed.first + fed.rows, :, : fed.width] for buffer in self.buffers)
        return keys, values

    def widen(self) -> None:
        """Go on in buffers with as many slots as the cache has now."""
        old, self.buffers = self.buffers, [self._zeros(states) for states in self.buffers]
        for buffer, states in zip(self.buffers, old, strict=True):
            buffer[:, :, : states.shape[2] - 1] = states[:, :, :-1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Slots that are read, and the first of them."""
        return self._cache.fed.width, 0

    def get_seq_length(self) -> int:
        """Slots that are read."""
        return self._cache.fed.width

    def get_max_length(self) -> int:
        """Slots allocated."""
        return self._cache.slots

    def _zeros(self, like: Tensor) -> Tensor:
        # Zeros, since what is masked still meets a weight of 0, and 0 times what was never written may be NaN.
        return like.new_zeros((self._cache.rows, like.shape[1], self._cache.slots + 1, like.shape[3]))


class Fed:
    """Where the tokens that are fed next are written, and how far their rows read.

    Attributes:
        first, rows: the rows fed, neighbours of one another.
        width: slots that are read, from the first.
        positions_BQ: of the tokens; `slots` of the cache for what does not count.
        rows_B1: the rows' places.
    """

    def __init__(self, first: int, width: int, positions_BQ: Tensor, places_R: Tensor) -> None:
        """Tokens for the rows from `first` on, as many as there are positions."""
        self.first, self.rows, self.width = first, len(positions_BQ), width
        self.positions_BQ = positions_BQ
        self.rows_B1 = places_R[first : first + self.rows, None]


class SlotCache(Cache):
    """The layers of a model with slots for `rows` rows.

    Attributes:
        rows: rows allocated.
        slots: slots of a row; a token's is its position.
        fed: what is fed next; set before the model is called.
    """

    fed: Fed

    def __init__(self, layers: int, rows: int, device: torch.device) -> None:
        """No slots yet: `reserve` them before anything is fed."""
        self.rows, self.slots = rows, 0
        super().__init__(layers=[SlotLayer(self) for _ in range(layers)])
        self._places_R = torch.arange(rows, device=device)

    def reserve(self, slots: int) -> None:
        """Have `slots` slots or more for every row; what has been written stays, at other addresses."""
        assert slots > self.slots, f"{self.slots} slots are there, {slots} asked for"
        self.slots = slots
        for layer in self._slotted:
            if layer.is_initialized:
                layer.widen()

    def drop(self) -> None:
        """Let go of all keys and values."""
        for layer in self._slotted:
            layer.buffers = []

    def feed(self, first: int, width: int, positions_BQ: Tensor) -> Tensor:
        """Say what is fed next; the mask to feed it with: bool [B, 1, Q, width]."""
        self.fed = Fed(first, width, positions_BQ, self._places_R)
        slots_W = torch.arange(width, device=positions_BQ.device)
        return (slots_W <= positions_BQ[:, :, None])[:, None]

    def move(self, source: Sequence[int], to: Sequence[int], width: int) -> None:
        """Copy the first `width` slots of rows to others, all at once: a row may take the place of one that goes."""
        device = self._places_R.device
        chosen, places = (torch.tensor(rows, dtype=torch.long, device=device) for rows in (source, to))
        for layer in self._slotted:
            for buffer in layer.buffers:
                buffer[places, :, :width] = buffer[chosen, :, :width]

    @property
    def _slotted(self) -> list[SlotLayer]:
        return cast("list[SlotLayer]", self.layers)
