"""Old and new scores of the same rollouts: how each new score is made, and the comparison worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import polars as pl
import pytest

from rc1_lib.environment.rewards import reward_terms
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.episodes import episode_frame
from rc1_lib.extras.rollouts.read import COLUMNS
from rc1_lib.extras.rollouts.rescore import by_formula, by_judge, by_rule, compare, of_episodes
from rc1_lib.reward.weighted_judge import WeightedJudge, finish
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json
from tests.environment.test_rewards import SETTINGS
from tests.evaluation.tables import episode, outcome, row
from tests.judge.bench import dialogues

HAND = pl.DataFrame(
    {
        "group": ["a", "a", "a", "b", "b", "c"],
        "question": ["a", "a", "a", "b", "b", "c"],
        "old": [1.0, 0.0, 0.0, 1.0, 0.5, None],
        "new": [0.0, 1.0, 0.0, 1.0, 0.5, 1.0],
        "length": [10, 20, 30, 5, 7, 99],
    }
)
"""Of the first and second rollout of `a` the other one is preferred now; the first no longer beats the third, and the
second now does; of `b` nothing changes; `c` had no score."""


def test_preferences_and_what_is_preferred_equal_those_by_hand() -> None:
    found = compare(HAND, ["length"], 50)
    kinds = {name: one["value"] for name, one in found["pairs"].items() if name != "compared"}
    assert kinds == {"same": 0.25, "reversed": 0.25, "newly decided": 0.25, "no longer decided": 0.25}
    assert found["rows"] == {
        "rollouts": 6, "compared": 5, "up": 1, "down": 1, "newly scored": 1, "no longer scored": 0,
    }  # fmt: skip
    preferred = {side: one["value"] for side, one in found["preferred"]["length"].items()}
    assert preferred == {"old": 7.5, "new": 12.5, "change": 5.0}
    score = found["score"]["all"]
    assert (score["old"]["value"], score["change"]["value"]) == (pytest.approx(0.5), 0.0)
    assert score["change"]["low"] <= 0.0 <= score["change"]["high"]


def test_evaluated_episodes_are_paid_as_in_training_to_the_last_bit() -> None:
    came = [{"asked": 2, "malformed": 1}, {"right": False, "turns": 7}, {"obtained": True, "asked": 1}]
    records = [replace(episode(number, **came[number % 3]), judged=0.37 + number / 100) for number in range(27)]
    dearer = replace(SETTINGS, alpha=0.4, turn=0.07, beta=0.3, judge=0.5)
    frame = of_episodes(episode_frame(records), SETTINGS, dearer)
    for side, settings in (("old", SETTINGS), ("new", dearer)):
        assert frame[side].to_list() == [
            reward_terms(
                outcome(needs=row(number)["needs_clarification"], **came[number % 3]),
                row(number)["bucket"], settings, judged=0.37 + number / 100,
            ).total
            for number in range(27)
        ]  # fmt: skip


def test_rule_pays_right_answers_and_leaves_rollouts_without_gold_unscored() -> None:
    frame = pl.DataFrame({"final": ["So, Answer: 72", "Answer: 71", "", "Answer: 3"], "gold": ["72", "72", "72", None]})
    assert by_rule(frame, "gsm8k").to_list() == [1.0, 0.0, 0.0, None]


def test_formula_leaves_what_lacks_a_number_unscored_and_refuses_other_names() -> None:
    frame = pl.DataFrame({"line": [1, 2, 3], "of.right": [1.0, 0.0, None], "characters": [10, 20, 30]})
    assert by_formula(frame, "right - characters / 100").to_list() == [0.9, -0.2, None]
    with pytest.raises(RC1Error, match="characters"):
        by_formula(frame.with_columns(pl.lit(1.0).alias("of.characters")), "characters")
    assert by_formula(frame, "2").to_list() == [2.0, 2.0, 2.0]
    for formula in ("wrong + 1", "right +", "'x'", "", "right / 0", "sqrt(0 - characters)"):
        with pytest.raises(RC1Error, match="--formula"):
            by_formula(frame, formula)


def test_judge_is_asked_only_where_there_is_no_reward(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    said = dialogues(3)
    schema = {"messages": COLUMNS["messages"], "reward": pl.Float64}
    frame = pl.DataFrame({"messages": said, "reward": [0.25, None, 0.75]}, schema=schema)
    every = by_judge(run, frame, failed_only=False)
    weighted = WeightedJudge(run, read_json(run.workspace.path(run.config.weights)))
    rated = finish(partial(weighted.rate, said))
    assert every.to_list() == [one.reward for one in rated] and None not in every.to_list()
    assert by_judge(run, frame, failed_only=True).to_list() == [0.25, every[1], 0.75]
