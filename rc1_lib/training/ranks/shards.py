"""A step's episodes dealt into shards, which are worked on one by one, or by several processes at once.

Sums round by the order of their terms, so what is summed in one go would differ in its last bits from what two
processes add up. Therefore the shards are part of the configuration, each is a batch of its own, and what they come to
is put together in their order: who worked on which of them then makes no difference to any bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.group import Link

Done = TypeVar("Done")


class Shards:
    """How many shards there are, and which of them are this process's.

    Attributes:
        count: shards of a step.
    """

    def __init__(self, count: int, link: Link | None = None) -> None:
        """All shards are this process's own where there is no link to others."""
        assert count >= 1, f"{count} shards"
        self.count, self._link = count, link

    @property
    def alone(self) -> bool:
        """Whether no other process has a share."""
        return self._link is None

    @property
    def mine(self) -> list[int]:
        """The shards of this process."""
        if self._link is None:
            return list(range(self.count))
        return list(range(self._link.rank, self.count, self._link.size))

    def deal(self, rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """The rows of every shard: by length to and fro (0 1 1 0), so that each gets as much to do.

        Args:
            rows: indices into `lengths`.
            lengths: of every row, in whatever measure.
        """
        shards: list[list[int]] = [[] for _ in range(self.count)]
        for place, row in enumerate(sorted(rows, key=lambda row: (-lengths[row], row))):
            lap, at = divmod(place, self.count)
            shards[self.count - 1 - at if lap % 2 else at].append(row)
        return shards

    def all_gather(self, mine: Mapping[int, Done]) -> list[Done]:
        """What came of every shard, in order, from what came of this process's own."""
        assert sorted(mine) == self.mine, f"shards {sorted(mine)} were worked on, {self.mine} are this process's"
        if self._link is None:
            return [mine[shard] for shard in range(self.count)]
        with timed(Section.OTHERS):
            found = self._link.all_gather(mine)
        return [found[shard] for shard in range(self.count)]


ONE = Shards(1)
"""No division at all."""
