"""The comparisons that every gate is made of: at the threshold, on either side of it, and with NaN."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rc1_lib.checks import above, at_least, at_most, below, equal, number, within
from rc1_lib.records import Check

Comparison = Callable[[float], Check]


@pytest.mark.parametrize(
    ("compare", "passing", "failing"),
    [
        (lambda value: at_least("x", value, 0.5, ""), (0.5, 0.6, math.inf), (0.4999, -math.inf)),
        (lambda value: at_most("x", value, 0.5, ""), (0.5, 0.4, -math.inf), (0.5001, math.inf)),
        (lambda value: below("x", value, 0.5, ""), (0.4999, -math.inf), (0.5, 0.6, math.inf)),
        (lambda value: above("x", value, 0.5, ""), (0.5001, math.inf), (0.5, 0.4, -math.inf)),
        (lambda value: within("x", value, 0.4, 0.6, ""), (0.4, 0.5, 0.6), (0.3999, 0.6001, math.inf, -math.inf)),
    ],
    ids=["at_least", "at_most", "below", "above", "within"],
)
def test_each_comparison_splits_at_its_threshold_and_fails_on_nan(
    compare: Comparison, passing: tuple[float, ...], failing: tuple[float, ...]
) -> None:
    assert [compare(value).passed for value in passing] == [True] * len(passing)
    assert [compare(value).passed for value in (*failing, math.nan)] == [False] * (len(failing) + 1)


@pytest.mark.parametrize(
    ("value", "wanted", "passed"),
    [(True, True, True), (1, 1, True), ("a", "a", True), (1, True, False), (True, 1, False), (0, False, False),
     ("1", 1, False), (None, False, False), ("a", "b", False)],
)  # fmt: skip
def test_equal_fails_if_the_types_differ(
    value: bool | int | str | None, wanted: bool | int | str, passed: bool
) -> None:
    assert equal("x", value, wanted, "").passed is passed


@pytest.mark.parametrize("missing", [None, "0.9", [0.9]])
def test_number_of_a_missing_aggregate_is_nan(missing: object) -> None:
    assert math.isnan(number(missing))
    assert (number(1), number(0.5)) == (1.0, 0.5)
