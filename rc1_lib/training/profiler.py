"""The time of a step's sections, where somebody asks for it; elsewhere one costs a tenth of a microsecond or so.

The profiler of torch shows every operation of a step, some hundred thousand: minutes and gigabytes. What is asked here
is in which section the time goes, and which of several processes waits for which.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType


class Section(StrEnum):
    """A section of a step; none lies within another."""

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
    """A stretch of a section; `began` and `ended` are seconds of a clock that all processes of a machine share."""

    section: Section
    began: float
    ended: float


_kept: list[Timing] | None = None
_settle: Callable[[], object] | None = None


class timed:
    """Inside, time counts as that of a section."""

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
    """Keep every span of this process from now on.

    Args:
        settle: waits for what a device was asked to do, at both ends of every span; else it goes on computing while the
            clock runs. Costs time, so that seconds are taken from steps that nobody looks into.
    """
    global _kept, _settle
    _kept, _settle = [], settle


def stop_timing() -> list[Timing]:
    """The spans since `start_timing`, in the order of their ends; no more are kept."""
    global _kept
    assert _kept is not None, "start_timing comes first"
    found, _kept = _kept, None
    return found
