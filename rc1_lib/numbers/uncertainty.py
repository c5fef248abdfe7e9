"""How far a check's value is from its threshold, whether the rows suffice to decide, and how many would.

None of this changes a gate's verdict: a value that misses its threshold fails. It only says whether the available rows
can decide, so that nobody mistakes a sample that is too small for a bad reward, or the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONFIDENCE = 0.95
"""Confidence level of all intervals: at the usual level a value can be compared with what others publish."""
_MOST_ROWS = 1e7
"""If more rows than this would be needed, the value practically equals its threshold."""


@dataclass(frozen=True, slots=True)
class CheckInterval:
    """The confidence interval of a check's value.

    Attributes:
        low: lower end; NaN if undefined.
        high: upper end; NaN if undefined.
        confidence: the confidence level, in (0, 1).
        n: the sample size.
        of: what the sample consists of, such as `dialogues` or `prompts`.
    """

    low: float
    high: float
    confidence: float
    n: float
    of: str

    @classmethod
    def from_dict(cls, body: Mapping[str, Any] | None) -> CheckInterval | None:
        """Read the JSON form of reports, in which null is NaN."""
        if body is None:
            return None
        ends = {name: math.nan if body[name] is None else body[name] for name in ("low", "high")}
        return cls(**{**body, **ends})

    def covers(self, op: str, threshold: float) -> bool:
        """Return whether the interval contains passing and failing values; False if an end is NaN."""
        match op:
            case ">=" | "<":
                return self.low < threshold <= self.high
            case "<=" | ">":
                return self.low <= threshold < self.high
        return False

    def rows_to_decide(self, value: float, threshold: float) -> float:
        """Estimate the sample size that would decide if the value stayed the same; infinite if it equals the threshold.

        The width of an interval shrinks with the square root of the sample size. If the end on the threshold's side is
        w away from the value, and the threshold d, the end reaches the threshold at the sample size n (w / d)².
        """
        distance = abs(value - threshold)
        width = self.high - value if value < threshold else value - self.low
        return self.n * (width / distance) ** 2 if distance else math.inf

    def in_words(self, op: str, value: float, threshold: float) -> str:
        """Return a note if the interval covers the threshold, else an empty text."""
        if not self.covers(op, threshold):
            return ""
        span = f"its {100 * self.confidence:g} % interval {self.low:.4g} to {self.high:.4g}"
        wanted = self.rows_to_decide(value, threshold)
        if not wanted <= _MOST_ROWS:
            return f"undecided: {span} covers the threshold and the value equals it: no number of rows would decide"
        return (
            f"undecided: {span} covers the threshold; about {_rounded_up(wanted):,} {self.of} would decide it "
            f"({self.n:,.0f} were checked)"
        )


def _rounded_up(number: float) -> int:
    """Round up to two significant digits, the precision of such an estimate."""
    step: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / step) * step


def margin(value: object, op: str, threshold: object) -> float:
    """Return how far a passed check is from failing, relative to its threshold; infinite if that is undefined."""
    bounds: list[Any] = threshold if isinstance(threshold, list) else [threshold]
    numbers = [item for item in (value, *bounds) if isinstance(item, int | float) and not isinstance(item, bool)]
    if op == "==" or len(numbers) < 1 + len(bounds):
        return math.inf
    if len(bounds) > 1 and math.isclose(bounds[0], bounds[-1], rel_tol=1e-4):
        return math.inf  # in effect an equality
    if value in (0, 1) and bounds == [value]:
        return math.inf  # values normally reach this bound: a weight of 0 or one model version is not a close call
    distances = (abs(numbers[0] - bound) / max(abs(bound), 1e-9) for bound in numbers[1:])
    return float(min(distances))
