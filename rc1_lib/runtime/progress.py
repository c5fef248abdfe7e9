"""Telling whoever watches how far a long step has come. Nobody has to listen, and nothing depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int, str], None]
"""Called with (stage, done, total, note) from whichever thread does the work."""

PASSING_NOTES = frozenset({"judge", "rollout", "scoring", "warm start", "base: training"})
"""Stages whose notes are figures of the moment: where lines stay on the screen, one now and then is enough."""

REPEATED = frozenset({"rollout", "scoring"})
"""Stages that begin again with every step of another one: where lines stay, their ends are not told each time."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear of all progress in this process while the block lasts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(stage: str, done: int, total: int, note: str = "") -> None:
    """Say that `done` of `total` parts of `stage` are finished; `note` says what the last part came to."""
    for listener in tuple(_listeners):
        listener(stage, done, total, note)
