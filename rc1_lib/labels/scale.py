"""People's labels as numbers in [0, 1]: verdicts in words, and scores on a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rc1_lib.errors import ConfigError
from rc1_lib.reward.verdict_agreement import VERDICT

Scale = tuple[float, float]
_WORDS = {
    **dict.fromkeys(("true", "yes", "good", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "bad", "fail", "failed"), 0.0),
}
_MOST_LEVELS = 11
_TENTHS = tuple(step / 10 for step in range(11))
_EXPECTED = "expected a verdict (good or bad, yes or no, true or false)"


@dataclass(frozen=True, slots=True)
class Said:
    """One label as a number in [0, 1], or an error message."""

    value: float | None
    is_word: bool = False
    fault: str = ""


def read_scale(flag: str, text: str | None) -> Scale | None:
    """A scale from `LOW:HIGH`.

    Raises:
        ConfigError: when it is not a scale.
    """
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        scale = float(low), float(high)
    except ValueError:
        scale = (0.0, 0.0)
    if not (math.isfinite(scale[0]) and math.isfinite(scale[1]) and scale[0] < scale[1]):
        raise ConfigError(f"{flag} {text}: expected LOW:HIGH, the worst and the best score, for example 1:5")
    return scale


def said(key: str, value: object, scale: Scale | None) -> Said:
    """Parse a label; None and empty texts are no label.

    Args:
        key: its name in error messages.
        value: the value in the file.
        scale: the worst and the best score; without one, scores are in [0, 1].
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return Said(None)
    if isinstance(value, bool):
        return Said(float(value), is_word=True)
    if isinstance(value, str) and (word := _WORDS.get(value.strip().lower())) is not None:
        return Said(word, is_word=True)
    found = as_number(value)
    low, high = scale or (0.0, 1.0)
    if found is None or not low <= found <= high:
        bounds = f"or a number from {low:g} to {high:g}"
        other = "" if scale else "; scores on another scale need --scale LOW:HIGH"
        return Said(None, fault=f"'{key}' is {value!r}, {_EXPECTED} {bounds}{other}")
    return Said((found - low) / (high - low))


def as_number(value: object) -> float | None:
    """A finite number, from a number or its text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def levels_of(labels: Sequence[float], scale: Scale | None) -> tuple[float, ...]:
    """The common levels of judge and people: two for a verdict, a scale's whole numbers, else the labels' values.

    Scores with more than eleven values are rounded to tenths; with quadratic weights this matters little.
    """
    values = sorted({*labels, *VERDICT})
    if scale is not None and all(bound.is_integer() for bound in scale):
        low, high = scale
        steps = [(number - low) / (high - low) for number in range(int(low), int(high) + 1)]
        if len(steps) <= 101 and all(min(abs(value - step) for step in steps) < 1e-9 for value in values):
            return tuple(steps)
    return tuple(values) if len(values) <= _MOST_LEVELS else _TENTHS
