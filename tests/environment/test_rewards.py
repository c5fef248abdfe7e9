"""Reward terms against hand-computed sums, and rewards over columns against those of single episodes."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.environment.rewards import RewardSettings, reward_terms, training_rewards
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.records import BUCKETS, Bucket
from rc1_lib.run import open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT

SOLVED = EpisodeOutcome(
    EpisodeStatus.ANSWERED, "384", True, needs=False, obtained=False, asked=0, off_target=0, turns=3, hops=2,
    tool_errors=0, malformed=0, tokens=50,
)  # fmt: skip
SETTINGS = RewardSettings(
    success=1.0, judge=0.0, alpha=0.07, cap=3, use_penalty=True, beta=0.05, malformed=0.1, turn=0.03
)

PRICE = st.floats(0, 10)
ALL_PRICES = st.builds(
    RewardSettings, success=st.floats(1e-3, 10), judge=st.just(0.0), alpha=PRICE, cap=st.integers(1, 9),
    use_penalty=st.booleans(), beta=PRICE, malformed=PRICE, turn=PRICE,
)  # fmt: skip
"""Every verified reward that the configuration accepts, and more."""


def total(outcome: EpisodeOutcome, bucket: Bucket = "medium", settings: RewardSettings = SETTINGS) -> float:
    return reward_terms(outcome, bucket, settings).total


@pytest.mark.parametrize(
    ("outcome", "bucket", "expected"),
    [
        (SOLVED, "medium", 1.0 - 0.09),
        (SOLVED, "hard", 1.05 - 0.09),
        (SOLVED, "easy", 0.95 - 0.09),
        (replace(SOLVED, asked=1), "hard", 1.05 - 0.07 - 0.09),
        (replace(SOLVED, asked=2), "medium", 1.0 - 0.14 - 0.09),
        (replace(SOLVED, asked=5), "medium", 1.0 - 0.21 - 0.09),
        (replace(SOLVED, right=False, asked=1), "hard", -0.07),
        (replace(SOLVED, needs=True, obtained=True, asked=2), "medium", 1.0 - 0.09),
        (replace(SOLVED, needs=True, asked=0), "medium", 0.0),
        (replace(SOLVED, malformed=2, turns=5), "medium", 1.0 - 0.2 - 0.15),
    ],
)
def test_total_reward_is_the_sum_of_its_terms(outcome: EpisodeOutcome, bucket: Bucket, expected: float) -> None:
    assert total(outcome, bucket) == pytest.approx(expected, abs=1e-12)


def test_turns_are_charged_alike_if_success_has_no_weight() -> None:
    unverified = replace(SETTINGS, success=0.0)
    assert total(replace(SOLVED, right=False), settings=unverified) == total(SOLVED, settings=unverified) == -0.09


def test_each_term_matches_its_hand_value() -> None:
    outcome = replace(SOLVED, asked=1, malformed=1)
    terms = reward_terms(outcome, "hard", replace(SETTINGS, judge=0.5), judged=0.8)
    expected = (1.0, 0.4, 1.05, 0.07, 0.1, 0.09)
    found = (terms.success, terms.judge, terms.factor, terms.penalty, terms.format, terms.turns)
    assert found == pytest.approx(expected, abs=1e-12)
    assert terms.total == pytest.approx(1.4 * 1.05 - 0.07 - 0.1 - 0.09, abs=1e-12)


def test_missing_score_is_an_error_and_a_zero_score_is_not() -> None:
    with pytest.raises(RC1Error, match=r"0\.5"):
        reward_terms(SOLVED, "easy", replace(SETTINGS, judge=0.5))
    zero = reward_terms(SOLVED, "easy", replace(SETTINGS, judge=0.5), judged=0.0)
    assert zero.judge == 0.0


@pytest.mark.parametrize(("name", "value"), [("alpha", -1), ("turn", float("nan"))])
def test_negative_or_nan_setting_is_rejected(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        replace(SETTINGS, **{name: value})


def some_outcome(dice: random.Random) -> EpisodeOutcome:
    return replace(
        SOLVED, right=dice.random() < 0.6, needs=dice.random() < 0.5, obtained=dice.random() < 0.5,
        asked=dice.randrange(6), turns=dice.randrange(1, 12), malformed=dice.choice((0, 0, 1, 3)),
    )  # fmt: skip


@pytest.mark.parametrize("on", product([0, 1], repeat=5))
def test_column_rewards_equal_episode_rewards_exactly(on: tuple[int, ...]) -> None:
    """The attack on the reward must use the rewards of training, bit for bit, whichever terms have weight."""
    dice = random.Random(f"{on}")
    names = ("success", "judge", "alpha", "malformed", "turn")
    weights = {name: weighs * dice.uniform(0.01, 1.5) for name, weighs in zip(names, on, strict=True)}
    settings = RewardSettings(
        **weights, beta=dice.choice((0.0, 0.5)), cap=dice.randrange(5), use_penalty=dice.random() < 0.7
    )
    episodes = [(some_outcome(dice), dice.choice(BUCKETS), dice.random()) for _ in range(60)]
    frame = pl.DataFrame(
        {
            "solved": [outcome.solved for outcome, _, _ in episodes],
            "main": [judged for _, _, judged in episodes],
            "bucket": [bucket for _, bucket, _ in episodes],
            "clarifications": [outcome.asked for outcome, _, _ in episodes],
            "needs_clarification": [outcome.needs for outcome, _, _ in episodes],
            "turns": [outcome.turns for outcome, _, _ in episodes],
            "malformed": [outcome.malformed for outcome, _, _ in episodes],
        }
    )
    paid = [reward_terms(outcome, bucket, settings, judged=judged).total for outcome, bucket, judged in episodes]
    assert frame.select(training_rewards(settings, pl.col("malformed"))).to_series().to_list() == paid
    clean = [
        reward_terms(replace(outcome, malformed=0), bucket, settings, judged=judged).total
        for outcome, bucket, judged in episodes
    ]
    assert frame.select(training_rewards(settings)).to_series().to_list() == clean


@pytest.mark.parametrize(("judge", "paid"), [(0.5, None), (0.0, 1.0 - 0.09)])
def test_column_reward_is_missing_if_a_weighted_score_is_missing(judge: float, paid: float | None) -> None:
    row = {"solved": True, "main": None, "bucket": "medium", "clarifications": 0, "needs_clarification": False}
    frame = pl.DataFrame([{**row, "turns": 3}], schema_overrides={"main": pl.Float64})
    found = frame.select(training_rewards(replace(SETTINGS, judge=judge))).to_series().to_list()
    assert found == [paid]


@given(ALL_PRICES, st.sampled_from(BUCKETS), st.booleans(), st.integers(1, 40))
def test_doing_nothing_never_pays_more_than_right_steps_with_a_wrong_answer(
    settings: RewardSettings, bucket: Bucket, needs: bool, turns: int
) -> None:
    tried = replace(SOLVED, right=False, needs=needs, obtained=needs, asked=int(needs), turns=turns)
    gave_up = replace(tried, obtained=False, asked=0, hops=0, answer="I don't know", turns=1)
    no_turn = replace(gave_up, answer="", status=EpisodeStatus.MAX_TOKENS, turns=0)
    for nothing in (gave_up, no_turn, replace(no_turn, malformed=2, turns=2)):
        assert total(nothing, bucket, settings) <= total(tried, bucket, settings)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_right_answer_pays_more_than_nothing_at_every_accepted_turn_price(beta: float) -> None:
    config = open_run(workspace=PROJECT_ROOT).config
    most, reward = config.training.limits.turns, config.training.reward
    highest_price = reward.success * (1 - beta) / most
    with pytest.raises(ConfigError, match=r"training\.reward\.turn"):
        open_run(
            workspace=PROJECT_ROOT,
            overrides=[f"difficulty_beta={beta}", f"training.reward.turn={highest_price + 1e-6}"],
        )
    run = open_run(
        workspace=PROJECT_ROOT, overrides=[f"difficulty_beta={beta}", f"training.reward.turn={highest_price - 1e-6}"]
    )
    settings = replace(RewardSettings.of(run.config), judge=0.0)
    for bucket in BUCKETS:
        slowest = replace(SOLVED, turns=most)
        assert total(slowest, bucket, settings) > total(replace(slowest, right=False), bucket, settings)
