"""A key-value cache that rows join and leave, without copying what stays.

All rows end at the same slot and begin where their length puts them, so a row that joins late is as good as one that
was there from the start.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from rc1_lib.training.rollout.growing_layer import LEAST_ROOM, GrowingLayer


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


def order_after(rows: int, kept: list[int]) -> list[int]:
    """Which row stands in each place once only `kept` of `rows` rows are left and the last ones fill the gaps."""
    assert kept == sorted(set(kept)), "rows are kept in order, each once"
    assert not kept or 0 <= kept[0] <= kept[-1] < rows, "a row that is kept is one of the rows"
    stay = set(kept)
    fill = [row for row in kept if row >= len(kept)]
    return [place if place in stay else fill.pop() for place in range(len(kept))]
