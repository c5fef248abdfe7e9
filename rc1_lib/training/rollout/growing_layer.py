"""Keys and values of one layer in buffers that are allocated ahead.

`DynamicCache` of transformers joins all slots with a new one at every step. Here the slots are doubled when they run
out, so a step writes one slot and returns views.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

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
