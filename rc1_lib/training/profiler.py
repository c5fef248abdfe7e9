"""Time the sections of a step on request. When off, a section costs about a tenth of a microsecond.

torch's profiler records every operation, several hundred thousand in a step, which takes minutes and gigabytes. Here
the questions are only which section takes the time, and which process waits for which.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType


class Section(StrEnum):
    """A section of a step. Sections do not overlap."""

    READ = "play: read prompts and answers"
    DECODE = "play: next tokens"
    DRAW = "play: draw tokens"
    WORLD = "play: the world's turn"
    JUDGE = "judge the episodes"
    ENCODE = "read demonstrations"
    REFERENCE = "learn: the reference reads"
    FORWARD = "learn: forward"
    BACKWARD = "learn: backward"
    OPTIMIZER = "learn: optimizer"
    VALUES = "learn: value head alone"
    OTHERS = "wait for other processes"


@dataclass(frozen=True, slots=True)
class Timing:
    """One interval in a section. `began` and `ended` are seconds of a clock that all processes of the machine share."""

    section: Section
    began: float
    ended: float


_kept: list[Timing] | None = None
_settle: Callable[[], object] | None = None


class timed:
    """Context manager that counts its time as that of a section."""

    __slots__ = ("_began", "_section")

    def __init__(self, section: Section) -> None:
        self._section = section

    def __enter__(self) -> None:
        if _kept is not None and _settle is not None:
            _settle()
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _kept is not None:
            if _settle is not None:
                _settle()
            _kept.append(Timing(self._section, self._began, time.perf_counter()))


def start_timing(settle: Callable[[], object] | None = None) -> None:
    """Record the intervals of this process from now on.

    Args:
        settle: waits for the device to finish; called at both ends of every interval. Without it, an asynchronous
            device would still compute after the clock stops. It slows steps down, so measure throughput without it.
    """
    global _kept, _settle
    _kept, _settle = [], settle


def stop_timing() -> list[Timing]:
    """Stop recording and return the intervals since `start_timing`, ordered by their ends."""
    global _kept
    assert _kept is not None, "call start_timing first"
    found, _kept = _kept, None
    return found
