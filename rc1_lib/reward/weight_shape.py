"""Checks that weights are usable: numbers, not negative, normalised, not dominated by one, of known criteria."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rc1_lib.checks import at_least, at_most, equal, info, within
from rc1_lib.config.thresholds import WeightsGate
from rc1_lib.records import Check

_ADVICE = "calibrate the weights: rc1 weight-calib"


def shape_checks(content: Any, thresholds: WeightsGate, dimensions: Sequence[str]) -> tuple[Check, ...]:
    """Whether the weights are usable, wherever they come from."""
    raw = content.get("weights") if isinstance(content, Mapping) else None
    present = isinstance(raw, Mapping) and bool(raw)
    numbers = {
        str(name): float(value)
        for name, value in (raw.items() if isinstance(raw, Mapping) else ())
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    all_numbers = isinstance(raw, Mapping) and len(numbers) == len(raw)
    unknown = len(set(raw) - set(dimensions)) if isinstance(raw, Mapping) else 0
    lowest, highest = min(numbers.values(), default=math.nan), max(numbers.values(), default=math.nan)
    tolerance = thresholds.sum_tolerance
    total = math.fsum(numbers.values()) if numbers else math.nan
    return (
        equal("weights present", present, True, _ADVICE),
        equal("every weight is a number", all_numbers, True, _ADVICE),
        at_least("smallest weight", lowest, 0.0, _ADVICE),
        at_most("largest weight", highest, thresholds.max_weight, f"no single criterion may dominate; {_ADVICE}"),
        within("sum", total, 1.0 - tolerance, 1.0 + tolerance, f"weights must sum to 1; {_ADVICE}"),
        equal("unknown dimensions", unknown, 0, f"weigh only {', '.join(dimensions)}"),
        info("dimensions", len(numbers)),
    )
