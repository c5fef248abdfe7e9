"""Report the progress of long steps to optional listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int, str], None]
"""Called with (stage, done, total, note) from the thread that does the work."""

PASSING_NOTES = frozenset({"judge", "rollout", "scoring", "warm start"})
"""Stages whose notes are momentary figures, so that a log without a terminal shows only some of them."""

REPEATED = frozenset({"rollout", "scoring"})
"""Stages that restart with every step of another one, so that such a log does not show each of their ends."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Listen to all progress in this process while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report_progress(stage: str, done: int, total: int, note: str = "") -> None:
    """Report that `done` of `total` parts of `stage` are finished; `note` describes the last one."""
    for listener in tuple(_listeners):
        listener(stage, done, total, note)
