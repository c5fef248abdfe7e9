"""Which checkpoints stay: the newest few, some on the way, and those that somebody will look at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Which checkpoints of a run stay; the others may go.

    Attributes:
        last: so many of the newest.
        every: and those of every multiple of this many steps; None: of none.
        always: and those of these steps.
    """

    last: int
    every: int | None = None
    always: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Refuses a rule that would remove the newest."""
        assert self.last >= 1, f"the last {self.last}"
        assert self.every is None or self.every >= 1, f"every {self.every} steps"

    def kept(self, there: Collection[int]) -> set[int]:
        """The steps of `there` that stay."""
        on_the_way = {step for step in there if self.every is not None and step % self.every == 0}
        return set(sorted(there)[-self.last :]) | on_the_way | (self.always & set(there))
