"""A check whose interval covers its threshold is undecided, and reports how many rows would decide it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rc1_lib.checks import above, at_least, at_most
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.intervals import bootstrap


def interval(low: float, high: float, n: float = 450) -> CheckInterval:
    return CheckInterval(low, high, 0.95, n, "dialogues")


def test_a_failed_check_whose_interval_covers_the_threshold_reports_the_rows_needed() -> None:
    check = at_least("spearman", 0.74, 0.75, "", interval(0.69, 0.78))
    assert not check.passed, "the value decides, and it misses its threshold"
    assert check.undecided == (
        "undecided: its 95 % interval 0.69 to 0.78 covers the threshold; about 7,200 dialogues would decide it "
        "(450 were checked)"
    )


@pytest.mark.parametrize(
    ("check", "is_undecided"),
    [
        (at_least("x", 0.8, 0.75, "", interval(0.70, 0.9)), True),
        (at_least("x", 0.8, 0.75, "", interval(0.75, 0.9)), False),
        (at_least("x", 0.6, 0.75, "", interval(0.5, 0.7)), False),
        (at_most("x", 0.8, 0.75, "", interval(0.70, 0.9)), True),
        (above("x", 0.7, 0.75, "", interval(0.65, 0.75)), False),
        (above("x", 0.8, 0.75, "", interval(0.75, 0.85)), True),
        (at_least("x", math.nan, 0.75, "", interval(0.70, 0.9)), False),
        (at_least("x", 0.8, 0.75, "", interval(math.nan, math.nan)), False),
        (at_least("x", 0.8, 0.75, ""), False),
    ],
)
def test_only_an_interval_on_both_sides_of_the_threshold_is_undecided(check: Check, is_undecided: bool) -> None:
    assert bool(check.undecided) is is_undecided


def test_a_value_equal_to_its_threshold_cannot_be_decided_by_more_rows() -> None:
    assert "no number of rows would decide" in at_least("x", 0.75, 0.75, "", interval(0.7, 0.8)).undecided


def test_the_reported_number_of_rows_decides() -> None:
    """The interval of a mean ends at the threshold for the reported number of rows, and covers it for fewer."""
    rng = np.random.default_rng(2)

    def found(n: int) -> Check:
        values = rng.normal(size=n)
        values = 0.1 + (values - values.mean()) / values.std()
        spread = bootstrap(
            lambda weights: {"mean": float(weights @ values / weights.sum())}, groups=np.arange(n),
            weights=np.ones(n), resamples=1000, confidence=0.95, seed=1,
        )["mean"]  # fmt: skip
        return at_least("mean", spread.value, 0.0, "", spread.of(n, "rows"))

    few = found(100)
    assert few.undecided and few.interval is not None
    wanted = few.interval.rows_to_decide(0.1, 0.0)
    assert 300 < wanted < 480, "1.96² / 0.1² are 384"
    assert not found(int(1.3 * wanted)).undecided
    assert found(int(0.7 * wanted)).undecided


def test_an_interval_survives_a_round_trip_through_the_report() -> None:
    checks = (at_least("a", 0.8, 0.75, "", interval(math.nan, 0.9)), at_least("b", 0.8, 0.75, "", interval(0.7, 0.9)))
    body = GateResult("x", checks).to_dict()
    assert "undecided" not in body["checks"][0]
    assert body["checks"][1]["undecided"] == checks[1].undecided, "the report contains the text"
    body["checks"][0]["interval"]["low"] = None  # as in JSON
    again = GateResult.from_dict(body)
    assert [check.undecided for check in again.checks] == [check.undecided for check in checks]
