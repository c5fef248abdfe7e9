"""Batches of shuffled rows, epoch after epoch, from a position that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rc1_lib.training.readers.encode import EncodedRow


class ShuffledRows:
    """Every row once an epoch; the order is decided by (seed, epoch) alone, so a position is two numbers."""

    def __init__(
        self,
        rows: Sequence[EncodedRow],
        collate: Callable[[Sequence[EncodedRow]], dict[str, Any]],
        rows_per_step: int,
        seed: int,
    ) -> None:
        """Start at the first row of epoch 0."""
        assert rows and rows_per_step >= 1
        self._rows, self._collate, self._take, self._seed = rows, collate, rows_per_step, seed
        self._epoch = self._position = 0
        self._order = self._shuffled(0)

    def next(self) -> dict[str, Any]:
        """The next batch. One that reaches beyond the end of an epoch is filled up from the next."""
        chosen: list[int] = []
        while len(chosen) < self._take:
            if self._position == len(self._rows):
                self._epoch, self._position = self._epoch + 1, 0
                self._order = self._shuffled(self._epoch)
            part = self._order[self._position : self._position + self._take - len(chosen)]
            self._position += len(part)
            chosen += part
        return self._collate([self._rows[index] for index in chosen])

    def state_dict(self) -> dict[str, Any]:
        """The epoch, and how many of its rows were given out."""
        return {"epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a position."""
        self._epoch, self._position = state["epoch"], state["position"]
        self._order = self._shuffled(self._epoch)

    def _shuffled(self, epoch: int) -> list[int]:
        bits = np.random.Philox(key=np.array([self._seed, epoch], dtype=np.uint64))
        return [int(index) for index in np.random.Generator(bits).permutation(len(self._rows))]
