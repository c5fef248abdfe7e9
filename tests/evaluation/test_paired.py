"""Paired changes against hand-computed numbers, and what their intervals are computed from."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from rc1_lib.evaluation.episodes import episode_frame
from rc1_lib.evaluation.evaluate import evaluate
from rc1_lib.evaluation.paired import OVERCLAR_DROP, Contrast, contrast
from tests.evaluation.tables import PPO, SFT, episode, table

SETTINGS: dict[str, Any] = {"confidence": 0.95, "resamples": 50, "seed": 1}


def compared(frame: pl.DataFrame) -> Contrast:
    return contrast(frame.filter(pl.col("mode") == "sampled"), before="sft", after="ppo", **SETTINGS)


def test_paired_changes_match_hand_values() -> None:
    found = compared(
        episode_frame(
            [
                episode(0, "sft", right=False), episode(0, "ppo", asked=1, obtained=True, turns=4),
                episode(3, "sft", asked=1, obtained=True, turns=4), episode(3, "ppo", asked=1, obtained=True, turns=4),
                episode(1, "sft", asked=2, turns=5), episode(1, "ppo"),
                episode(2, "sft", asked=1, turns=4), episode(2, "ppo", asked=1, turns=4),
            ]
        )
    )  # fmt: skip
    change = {name: interval.value for name, interval in found.change.items()}
    assert found.prompts == 4
    assert change["success"] == 25.0
    assert change["success_needed"] == 50.0
    assert change["ask_recall"] == 50.0
    assert change["overclar_rate"] == -50.0
    assert change[OVERCLAR_DROP] == 50.0
    assert change["ask_gap"] == 100.0  # from 0.5 - 1.0 to 1.0 - 0.5
    assert change["ask_precision"] == pytest.approx(100 * (2 / 3 - 1 / 3))
    assert change["turns"] == pytest.approx((1 + 0 - 2 + 0) / 4)
    assert change["needless_questions"] == -1.0
    assert math.isnan(change["success_hard"])


def test_bootstrap_resamples_source_questions_not_prompts() -> None:
    frame = table(prompts=108)
    twins = frame.with_columns(row_id=pl.col("row_id") + "-again")
    # Duplicated prompts about the same source questions carry no new information.
    assert compared(pl.concat([frame, twins])).change == compared(frame).change
    independent = twins.with_columns(source_id=pl.col("source_id") + "-again")
    width = [
        found.change["turns"].high - found.change["turns"].low
        for found in (compared(pl.concat([frame, independent])), compared(frame))
    ]
    assert width[0] < width[1]


def test_one_question_has_a_value_and_no_interval() -> None:
    change = compared(episode_frame([episode(0, "sft", right=False), episode(0, "ppo")])).change["right"]
    assert change.value == 100.0 and math.isnan(change.low) and math.isnan(change.high)


def test_evaluation_has_both_modes_and_every_group() -> None:
    frame = table(SFT, PPO, prompts=108)
    found = evaluate(frame, **SETTINGS)
    assert list(found.modes) == ["sampled", "greedy"]
    assert found.groups == {"all": 108, "need asking": 36, "clear": 72, "hard": 24}
    by = found.modes["sampled"].by
    assert {name: list(groups) for name, groups in by.items()} == {
        "task": ["hotpotqa", "strategyqa", "gsm8k"],
        "bucket": ["easy", "medium", "hard"],
        "wording": ["plain", "vague"],
    }
    assert all(sum(part.prompts for part in groups.values()) == 108 for groups in by.values())
    easy = frame.filter(pl.col("bucket") == "easy")
    assert by["bucket"]["easy"].to_dict() == compared(easy).to_dict()


def test_seeds_are_pooled_pair_by_pair() -> None:
    first, second = table(prompts=54, seed=1), table(prompts=54, seed=2)
    found = evaluate(pl.concat([first, second]), **SETTINGS)
    assert [counts["all"] for counts in found.prompts.values()] == [54, 54]
    assert found.groups["all"] == 108
    # The same prompts, answered alike under two seeds, are the same source questions: no new information.
    assert found.modes["sampled"].overall.change == compared(first).change
