"""Noise between samples: against results worked out by hand, and against draws of known noise."""

from __future__ import annotations

import math

import polars as pl
import pytest

from rc1_lib.judge.noise import OVERALL, long_scores, pooled
from rc1_lib.judge.results import SCORE_SCHEMA, medians_and_variances


def scores(*rows: tuple[str, int, str, float | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCORE_SCHEMA, orient="row")


BY_HAND = scores(
    ("a", 0, "clear", 0.2), ("a", 1, "clear", 0.4), ("a", 2, "clear", 0.9),
    ("b", 0, "clear", 0.5), ("b", 1, "clear", 0.7),
    ("c", 0, "clear", 0.1),
    ("a", 0, "brief", 0.3), ("a", 1, "brief", 0.3), ("a", 2, "brief", 0.3),
)  # fmt: skip


def test_medians_and_variances_equal_those_worked_out_by_hand() -> None:
    """0.2, 0.4, 0.9: mean 0.5, squares 0.09 + 0.01 + 0.16 = 0.26, over 2."""
    found = medians_and_variances(BY_HAND)
    assert found.select("dialogue", "dimension", "samples").rows() == [
        ("a", "clear", 3), ("b", "clear", 2), ("c", "clear", 1), ("a", "brief", 3),
    ]  # fmt: skip
    assert found["median"].to_list() == pytest.approx([0.4, 0.6, 0.1, 0.3])
    assert found["variance"].to_list()[:2] == pytest.approx([0.13, 0.02])
    assert found["variance"].to_list()[2] is None
    assert found["variance"].to_list()[3] == pytest.approx(0.0, abs=1e-30)


def test_pooled_noise_equals_that_worked_out_by_hand() -> None:
    """Squares 0.26 + 0.02 over 2 + 1 degrees of freedom; chi-square with 3: quantiles 0.2158 and 9.3484."""
    clear, brief, overall = pooled(BY_HAND, 0.95)
    assert (clear.dimension, clear.dialogues, clear.df) == ("clear", 2, 3)
    assert clear.variance == pytest.approx(0.28 / 3)
    assert clear.sd == pytest.approx(math.sqrt(0.28 / 3))
    assert clear.low == pytest.approx(math.sqrt(0.28 / 9.348404), rel=1e-6)
    assert clear.high == pytest.approx(math.sqrt(0.28 / 0.215795), rel=1e-5)
    assert (brief.dialogues, brief.df) == (1, 2)
    assert (brief.sd, brief.low, brief.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)
    assert (overall.dimension, overall.dialogues, overall.df) == (OVERALL, 2, 2)
    assert overall.variance == pytest.approx(0.28 / 5)


def test_the_noise_of_single_samples_is_undefined() -> None:
    one, overall = pooled(scores(("a", 0, "clear", 0.2), ("b", 0, "clear", 0.9)), 0.95)
    for noise in (one, overall):
        assert (noise.dialogues, noise.df) == (0, 0)
        assert all(math.isnan(number) for number in (noise.variance, noise.sd, noise.low, noise.high))


def test_missing_scores_are_left_out_and_nan_makes_the_noise_nan() -> None:
    holes = scores(("a", 0, "clear", 0.2), ("a", 1, "clear", None), ("a", 2, "clear", 0.4))
    assert medians_and_variances(holes).row(0)[2] == 2
    assert pooled(holes, 0.9)[0].df == 1
    poisoned = scores(("a", 0, "clear", 0.2), ("a", 1, "clear", math.nan), ("a", 2, "clear", 0.4))
    assert all(math.isnan(number) for number in medians_and_variances(poisoned).row(0)[3:])
    assert math.isnan(pooled(poisoned, 0.9)[0].sd)


def test_scores_are_read_from_log_lines() -> None:
    lines = pl.DataFrame(
        {
            "dialogue": ["a", "a", "b", "c", "d", "e"],
            "sample": [0, 1, 0, 0, 0, 0],
            "scores": [
                '{"clear": 0.5, "brief": 1}', '{"clear":2.5e-1,"brief":NaN}', '{"clear": "high"}', "{}",
                '{"clear": 0.5', None,
            ],
        }
    )  # fmt: skip
    found = long_scores(lines)
    assert found.schema == pl.Schema(SCORE_SCHEMA)
    assert found.rows()[:3] == [("a", 0, "clear", 0.5), ("a", 0, "brief", 1.0), ("a", 1, "clear", 0.25)]
    assert math.isnan(found.rows()[3][3])
    assert [(row[0], row[2], math.isnan(row[3])) for row in found.rows()[4:]] == [
        ("b", None, True), ("c", None, True), ("d", None, True),
    ]  # fmt: skip
