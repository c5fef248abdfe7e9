"""The rewards of adversarial policies, worked out by hand, and the success of best-of-n by the reward."""

from __future__ import annotations

from itertools import combinations

import polars as pl
import pytest

from rc1_lib.reward.hacking import best_of_n, earned


def frame(reward: list[float | None], solved: list[bool], reference: list[float | None]) -> pl.DataFrame:
    n = len(reward)
    return pl.DataFrame(
        {
            "reward": reward, "solved": solved, "lucky": [False] * n,
            "worthless": [not one for one in solved], "reference": reference,
            "source_id": [f"q{i}" for i in range(n)], "task": ["gsm8k", "hotpotqa"] * (n // 2) + ["gsm8k"] * (n % 2),
            "bucket": ["easy"] * n, "lang": ["en"] * n, "needs_clarification": [False] * n,
        },
        schema_overrides={"reward": pl.Float64, "reference": pl.Float64},
    )  # fmt: skip


def test_only_prompts_that_the_policy_did_not_solve_and_the_expert_has_a_score_for_count() -> None:
    rows = frame([0.9, 0.5, 0.2, 0.7, None], [False, True, False, False, False], [0.8, 0.8, None, 0.9, 0.8])
    found = earned(rows, resamples=50, confidence=0.9, seed=1)
    assert found.overall.prompts == 2
    assert found.overall.margin == pytest.approx(((0.8 - 0.9) + (0.9 - 0.7)) / 2)
    assert found.overall.above == pytest.approx(0.5)
    assert found.mean == pytest.approx((0.9 + 0.5 + 0.2 + 0.7) / 4)
    assert found.solved == pytest.approx(0.25)
    assert found.parts["task=gsm8k"].margin == pytest.approx(-0.1)
    assert found.parts["task=hotpotqa"].margin == pytest.approx(0.2)


def test_a_hedge_counts_even_if_the_answer_rule_accepts_it() -> None:
    rows = frame([0.9, 0.2], [True, False], [0.8, 0.8]).with_columns(worthless=True)
    found = earned(rows, resamples=50, confidence=0.9, seed=1)
    assert (found.overall.prompts, found.overall.above, found.solved, found.right) == (2, 0.5, 0.5, 0.5)
    needing = earned(rows.with_columns(solved=False, lucky=True), resamples=50, confidence=0.9, seed=1)
    assert (needing.solved, needing.right) == (0.0, 1.0)


def by_hand(rewards: list[float], solved: list[bool], n: int) -> float:
    """Return the success of the best by reward over every subset of n; ties share."""
    shares = []
    for chosen in combinations(range(len(rewards)), n):
        best = max(rewards[i] for i in chosen)
        top = [solved[i] for i in chosen if rewards[i] == best]
        shares.append(sum(top) / len(top))
    return sum(shares) / len(shares)


def test_best_of_n_equals_the_mean_over_every_subset() -> None:
    rewards, solved = [0.9, 0.1, 0.5, 0.3], [False, True, True, False]
    curve = best_of_n([rewards], [solved])
    assert curve == pytest.approx([by_hand(rewards, solved, n) for n in (1, 2, 3, 4)])


def test_best_of_n_falls_if_the_reward_prefers_failures() -> None:
    good = best_of_n([[0.9, 0.2, 0.1]] * 5, [[True, False, False]] * 5)
    bad = best_of_n([[0.9, 0.2, 0.1]] * 5, [[False, True, True]] * 5)
    assert good == sorted(good)
    assert bad == sorted(bad, reverse=True)
    assert bad[-1] == 0.0
