"""How far a check's value is from its threshold, when that is too uncertain to say, and what rows would tell.

The rule of a gate stays as it is: a value that misses its threshold is red. What is said here is only whether the rows
at hand can tell, so that nobody takes a sample that is too small for a reward that is bad, or the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST_ROWS = 1e7
"""Beyond this nobody can have as many: the value as good as lies on its threshold."""


@dataclass(frozen=True, slots=True)
class CheckInterval:
    """How uncertain a check's value is.

    Attributes:
        low: lower end; NaN where there is none.
        high: upper end; NaN where there is none.
        confidence: nominal share of such intervals that hold the true value.
        n: how many were looked at.
        of: what these are, for people: `dialogues`, `prompts`.
    """

    low: float
    high: float
    confidence: float
    n: float
    of: str

    @classmethod
    def from_dict(cls, body: Mapping[str, Any] | None) -> CheckInterval | None:
        """What a report holds of it; JSON has null where an end is NaN."""
        if body is None:
            return None
        ends = {name: math.nan if body[name] is None else body[name] for name in ("low", "high")}
        return cls(**{**body, **ends})

    def covers(self, op: str, threshold: float) -> bool:
        """Whether true values on either side of the threshold lie in the interval; not where it has no ends."""
        match op:
            case ">=" | "<":
                return self.low < threshold <= self.high
            case "<=" | ">":
                return self.low <= threshold < self.high
        return False

    def rows_to_decide(self, value: float, threshold: float) -> float:
        """About how many of them would decide, if the value stayed where it is; infinite where it is the threshold.

        The width of an interval shrinks with the square root of the number of rows. So the end w away from the value,
        on the threshold's side, comes as near as the threshold, d away, with n (w / d)² rows.
        """
        distance = abs(value - threshold)
        width = self.high - value if value < threshold else value - self.low
        return self.n * (width / distance) ** 2 if distance else math.inf

    def in_words(self, op: str, value: float, threshold: float) -> str:
        """What to say of a value whose interval covers its threshold; empty where it does not."""
        if not self.covers(op, threshold):
            return ""
        span = f"its {100 * self.confidence:g} % interval {self.low:.4g} to {self.high:.4g}"
        wanted = self.rows_to_decide(value, threshold)
        if not wanted <= _MOST_ROWS:
            return f"undecided: {span} covers the threshold, and the value all but lies on it; no number would decide"
        return (
            f"undecided: {span} covers the threshold; about {_rounded_up(wanted):,} {self.of} would decide it "
            f"({self.n:,.0f} were looked at)"
        )


def _rounded_up(number: float) -> int:
    """Two digits are all that such an estimate is good for."""
    step: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / step) * step


def margin(value: object, op: str, threshold: object) -> float:
    """How far a passed check is from failing, relative to its threshold; infinite where there is no distance."""
    bounds: list[Any] = threshold if isinstance(threshold, list) else [threshold]
    numbers = [item for item in (value, *bounds) if isinstance(item, int | float) and not isinstance(item, bool)]
    if op == "==" or len(numbers) < 1 + len(bounds):
        return math.inf
    if len(bounds) > 1 and math.isclose(bounds[0], bounds[-1], rel_tol=1e-4):
        return math.inf  # an equality in all but name
    if value in (0, 1) and bounds == [value]:
        return math.inf  # a bound that good values touch: a weight of 0, one model version, is no close call
    distances = (abs(numbers[0] - bound) / max(abs(bound), 1e-9) for bound in numbers[1:])
    return float(min(distances))
