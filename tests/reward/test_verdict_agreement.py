"""Agreement with people: against results worked out by hand or published, and against chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rc1_lib.reward.verdict_agreement import (
    VERDICT,
    Errors,
    corrected_share,
    judge_errors,
    kappa,
    kappa_at_matched_cut,
    matched_cut,
    on_levels,
    people_among_themselves,
    same_level,
)

ONES = np.ones


def of_table(*cells: tuple[float, float, int]) -> tuple[list[float], list[float]]:
    """Return two columns from cells of (judge, people, count)."""
    return (
        [judge for judge, _, count in cells for _ in range(count)],
        [people for _, people, count in cells for _ in range(count)],
    )


def test_kappa_equals_that_of_a_textbook_table() -> None:
    """Of 50: both good 20, both bad 15, 5 and 10 mixed. Agreement 0.70, by chance 0.50: kappa 0.40."""
    judge, people = of_table((1, 1, 20), (1, 0, 5), (0, 1, 10), (0, 0, 15))
    assert same_level(judge, people, ONES(50)) == pytest.approx(0.70)
    assert kappa(judge, people, ONES(50)) == pytest.approx(0.40)


def test_kappa_of_scores_equals_its_definition_with_squared_weights() -> None:
    """Against the definition, with a table of counts: 1 - Σ w observed / Σ w expected, w = (i - j)²."""
    rng = np.random.default_rng(0)
    people = rng.integers(0, 5, 400)
    judge = np.clip(people + rng.integers(-2, 3, 400), 0, 4)
    counts = np.zeros((5, 5))
    np.add.at(counts, (judge, people), 1)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / 400
    squares = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    by_hand = 1 - (squares * counts).sum() / (squares * expected).sum()
    assert kappa(judge / 4, people / 4, ONES(400)) == pytest.approx(by_hand)


def test_row_weights_of_kappa_equal_repeated_rows() -> None:
    judge, people = np.array([1.0, 1, 0, 0, 1]), np.array([1.0, 0, 0, 1, 1])
    weights = np.array([2, 1, 3, 1, 0])
    twice = np.repeat(np.arange(5), weights)
    assert kappa(judge, people, weights) == pytest.approx(kappa(judge[twice], people[twice], ONES(7)))


def test_a_constant_verdict_has_kappa_0_although_it_agrees_often() -> None:
    judge, people = of_table((1, 1, 95), (0, 1, 5))
    assert same_level(judge, people, ONES(100)) == pytest.approx(0.95)
    assert kappa(judge, people, ONES(100)) == pytest.approx(0.0)
    assert math.isnan(kappa(ONES(9), ONES(9), ONES(9)))


def test_random_verdicts_agree_often_and_have_kappa_0() -> None:
    rng = np.random.default_rng(1)
    judge, people = rng.random(20_000) < 0.9, rng.random(20_000) < 0.9
    assert same_level(judge, people, ONES(20_000)) > 0.8
    assert abs(kappa(judge, people, ONES(20_000))) < 0.03


def test_scores_map_to_the_nearest_level_and_verdicts_by_the_cut() -> None:
    assert on_levels([0.1, 0.49, 0.51, 1.0], (0.0, 1 / 3, 2 / 3, 1.0), 0.9).tolist() == [0, 1 / 3, 2 / 3, 1]
    assert on_levels([0.1, 0.89, 0.9], VERDICT, 0.9).tolist() == [0, 0, 1]


def test_the_corrected_share_equals_rogan_and_gladens() -> None:
    assert corrected_share(0.30, Errors(0.9, 0.8)) == pytest.approx(0.10 / 0.70)
    assert corrected_share(0.10, Errors(0.9, 0.8)) == 0.0
    assert corrected_share(0.95, Errors(0.9, 0.8)) == 1.0
    assert math.isnan(corrected_share(0.5, Errors(0.6, 0.4)))
    assert math.isnan(corrected_share(0.5, Errors(math.nan, 0.9)))


def test_the_corrected_share_recovers_the_true_share_from_few_labels() -> None:
    rng = np.random.default_rng(2)
    good = rng.random(200_000) < 0.3
    judged = np.where(good, rng.random(200_000) < 0.85, rng.random(200_000) < 0.25)
    labelled = slice(0, 5_000)
    errors = judge_errors(judged[labelled], good[labelled], ONES(5_000))
    assert judged.mean() == pytest.approx(0.43, abs=0.01)
    assert corrected_share(float(judged.mean()), errors) == pytest.approx(0.3, abs=0.03)


def test_krippendorffs_alpha_equals_the_published_example() -> None:
    """Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four people, twelve units, interval 0.849."""
    labels_by_person = """
        1 2 3 3 2 1 4 1 2 . . .
        1 2 3 3 2 2 4 1 2 5 . 3
        . 3 3 3 2 3 4 2 2 5 1 .
        1 2 3 3 2 4 4 1 2 5 1 .
    """
    cells = [line.split() for line in labels_by_person.strip().splitlines()]
    values = [(float(cell), unit) for line in cells for unit, cell in enumerate(line) if cell != "."]
    labels, units = zip(*values, strict=True)
    assert people_among_themselves(labels, units) == pytest.approx(0.849, abs=0.0005)


def test_alpha_without_common_dialogues_is_undefined() -> None:
    assert math.isnan(people_among_themselves([0.0, 1.0, 1.0], ["a", "b", "c"]))
    assert people_among_themselves([0.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"]) == 1.0


def test_a_wrong_cut_is_distinguished_from_a_wrong_order() -> None:
    rng = np.random.default_rng(3)
    good = rng.random(400) < 0.4
    scores = 0.8 + 0.05 * good + 0.02 * rng.random(400)
    rows = ONES(400)
    assert kappa(scores >= 0.5, good, rows) == pytest.approx(0.0)
    cut = matched_cut(scores, good, rows)
    assert 0.82 < cut < 0.86
    settings = {"folds": 5, "seed": 1}
    assert kappa_at_matched_cut(scores, good, rows, np.arange(400), **settings) > 0.95
    assert abs(kappa_at_matched_cut(rng.permutation(scores), good, rows, np.arange(400), **settings)) < 0.15
    assert math.isnan(kappa_at_matched_cut(scores[:4], good[:4], rows[:4], np.arange(4), **settings))
