"""Agreement with people: against results worked out by hand, and against chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rc1_lib.calibration.judge_agreement import kappa, share

ONES = np.ones


def test_kappa_equals_that_of_a_textbook_table() -> None:
    """Of 50: both good 20, both bad 15, 5 and 10 mixed. Agreement 0.70, by chance 0.50: kappa 0.40."""
    judge = np.repeat([True, True, False, False], [20, 5, 10, 15])
    people = np.repeat([True, False, True, False], [20, 5, 10, 15])
    assert share(judge == people, ONES(50)) == pytest.approx(0.70)
    assert kappa(judge, people, ONES(50)) == pytest.approx(0.40)


def test_row_weights_of_kappa_equal_repeated_rows() -> None:
    judge, people = np.array([True, True, False, False, True]), np.array([True, False, False, True, True])
    weights = np.array([2, 1, 3, 1, 0])
    twice = np.repeat(np.arange(5), weights)
    assert kappa(judge, people, weights) == pytest.approx(kappa(judge[twice], people[twice], ONES(7)))


def test_one_verdict_for_everything_is_no_agreement_and_two_of_them_are_undefined() -> None:
    mixed = np.arange(10) < 9
    assert kappa(ONES(10), mixed, ONES(10)) == pytest.approx(0)
    assert math.isnan(kappa(ONES(10), ONES(10), ONES(10)))
    assert math.isnan(kappa(mixed, mixed, np.zeros(10)))
