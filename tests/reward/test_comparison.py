"""The comparison of the baseline reward with the calibrated reward, worked out by hand on a few dialogues."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import orjson
import polars as pl
import pytest

from rc1_lib.calibration.judged_rows import UNSTABLE_WEIGHT, judge_rows, scoring, with_reward
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.judge import client
from rc1_lib.judge.rubric import DIMENSIONS as GRADED
from rc1_lib.reward.comparison import Comparison, compare
from rc1_lib.run import Run
from tests.judge.bench import overrides
from tests.judge.gateway import Gateway, Reply, completion

CONFIDENCE = 0.95
FIGURES = {
    "spearman", "kendall_tau", "top10_overlap", "top20_overlap", "top10_lead_kept", "corr_to_success_old",
    "corr_to_success_new", "corr_gain", "corr_improve_pct", "auc_old", "auc_new", "length_corr_old", "length_corr_new",
}  # fmt: skip
KINDS: dict[str, Any] = {
    "old": pl.Float64, "main": pl.Float64, "reward": pl.Float64, "total": pl.Float64, "solved": pl.Boolean,
    "weight": pl.Float64, "group": pl.String, "task": pl.String, "bucket": pl.String, "needs_clarification": pl.Boolean,
    "clarifications": pl.Int64, "turns": pl.Int64, "answer_length": pl.Int64, "answered": pl.Float64,
}  # fmt: skip


def dialogues(*rows: dict[str, Any]) -> pl.DataFrame:
    """Return scored easy dialogues about complete questions, without questions to the user, changed by `rows`."""
    plain = {
        "solved": True, "weight": 1.0, "task": "gsm8k", "bucket": "easy", "needs_clarification": False,
        "clarifications": 0, "turns": 3, "answer_length": 12,
    }  # fmt: skip
    full = [{**plain, "group": f"q{number}", **row} for number, row in enumerate(rows)]
    return pl.DataFrame(
        [
            {**row, "answered": row["old"], **{name: row.get(name, row["reward"]) for name in ("main", "total")}}
            for row in full
        ],
        schema=KINDS,
    )


def scores(old: list[float], new: list[float], solved: list[bool], **columns: list[Any]) -> pl.DataFrame:
    """Return dialogues given by column."""
    rows = [
        {"old": a, "reward": b, "solved": c, **{name: values[number] for name, values in columns.items()}}
        for number, (a, b, c) in enumerate(zip(old, new, solved, strict=True))
    ]
    return dialogues(*rows)


def compared(frame: pl.DataFrame, resamples: int = 20) -> Comparison:
    return compare(frame, weighed=["answered"], confidence=CONFIDENCE, resamples=resamples, seed=7)


def values(found: Comparison) -> dict[str, float]:
    return {name: figure.value for name, figure in found.figures.items()}


# Ten dialogues in the order of the old score; the new reward swaps the last two. Success: the upper five by it.
OLD = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
SWAPPED = [*OLD[:8], 1.0, 0.9]
UPPER = [False] * 5 + [True] * 5


def test_the_figures_equal_those_worked_out_by_hand() -> None:
    found = values(compared(scores(OLD, SWAPPED, UPPER)))
    assert set(found) == FIGURES
    # Two ranks differ by 1: 1 - 6 * 2 / (10 * 99); one of 45 pairs is discordant: (44 - 1) / 45.
    assert found["spearman"] == pytest.approx(1 - 12 / 990)
    assert found["kendall_tau"] == pytest.approx(43 / 45)
    assert found["top10_overlap"] == 0.0
    assert found["top20_overlap"] == 1.0
    # The new best dialogue has 0.9 by the old score, the old best 1.0, and the mean is 0.55.
    assert found["top10_lead_kept"] == pytest.approx(0.35 / 0.45)
    # Ranks 1..10 against mean ranks 3 and 8: covariance 62.5, spreads sqrt(82.5) and sqrt(62.5).
    correlation = math.sqrt(62.5 / 82.5)
    assert found["corr_to_success_old"] == pytest.approx(correlation)
    assert found["corr_to_success_new"] == pytest.approx(correlation)
    assert found["corr_gain"] == pytest.approx(0.0, abs=1e-12)
    assert found["corr_improve_pct"] == pytest.approx(0.0, abs=1e-9)


def test_the_correlation_with_length_is_computed_within_each_outcome() -> None:
    """Longer successes are not a fault; the old score follows the length only among successes."""
    lengths = [4, 3, 2, 1, 1, 11, 12, 13, 14, 15]
    found = values(compared(scores(OLD, OLD[::-1], UPPER, answer_length=lengths)))
    # Failures: ranks 5, 4, 3, 1.5, 1.5 against 1 to 5; successes: the same order. Five dialogues each.
    failures = -9.5 / math.sqrt(10 * 9.5)
    assert found["length_corr_old"] == pytest.approx((failures + 1) / 2)
    assert found["length_corr_new"] == pytest.approx((-failures - 1) / 2)
    assert values(compared(scores(OLD, SWAPPED, UPPER)))["length_corr_old"] == 0.0


SPLIT = scores(
    old=[0.9, 0.8, 0.3, 0.2] * 2,
    new=[0.2, 0.9, 0.8, 0.3] * 2,
    solved=[False, True, True, False] * 2,
    bucket=["easy"] * 4 + ["hard"] * 4,
    task=["gsm8k"] * 4 + ["strategyqa"] * 4,
    clarifications=[2, 0, 0, 1] * 2,
    needs_clarification=[False] * 4 + [True, False, True, False],
    turns=[6, 2, 4, 8] * 2,
)
"""In both buckets the old score keeps dialogues 1 and 2 as the better half, the new reward 2 and 3."""


def test_the_split_compares_the_better_half_of_every_bucket() -> None:
    split = compared(SPLIT).split
    assert list(split["difficulty"]) == ["easy", "hard"]
    assert split["difficulty"]["easy"] == {
        "n": 4.0, "success": 0.5, "success_old": 0.5, "success_new": 1.0, "delta_pp": 50.0,
        "overclar_rate_old": 0.5, "overclar_rate_new": 0.0, "avg_turns_old": 4.0, "avg_turns_new": 3.0,
    }  # fmt: skip
    # Of the kept hard dialogues only number 2 could ask needlessly, and did not.
    hard = split["difficulty"]["hard"]
    assert (hard["overclar_rate_old"], hard["overclar_rate_new"]) == (0.0, 0.0)
    assert split["task"]["gsm8k"] == split["difficulty"]["easy"]
    assert split["task"]["strategyqa"] == hard


def test_an_unstable_dialogue_counts_half() -> None:
    """Three of weight 0.5 count as much as one and a half of weight 1."""
    weight = [1.0, 1.0, 0.5, 0.5, 0.5]
    found = compared(scores([0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5], [False, True, True, True, False],
                            weight=weight))  # fmt: skip
    assert (found.rows, found.weight, found.solved) == (5, 3.5, 3)
    easy = found.split["difficulty"]["easy"]
    assert easy["success"] == pytest.approx(2.0 / 3.5)
    # The better half is 1.75 rows: the three halves whole, and a quarter of the second dialogue.
    assert easy["success_new"] == pytest.approx((0.5 + 0.5 + 0.25) / 1.75)


def test_unscored_dialogues_are_left_out_of_the_figures() -> None:
    frame = scores(OLD, SWAPPED, UPPER)
    lost = scores([0.9, 0.1], [0.1, 0.9], [True, False]).with_columns(
        old=pl.lit(None, pl.Float64), reward=None, total=None, weight=0.0, bucket=pl.lit("hard")
    )
    both = compared(pl.concat([frame, lost], how="vertical_relaxed"))
    assert both.to_dict() == compared(frame).to_dict()
    assert both.rows == 10


def test_intervals_are_paired_and_resampled_by_question() -> None:
    """All dialogues of a question are drawn together: with one group nothing can vary."""
    frame = scores(OLD, SWAPPED, UPPER)
    together = compared(frame.with_columns(group=pl.lit("q")))
    for figure in together.figures.values():
        assert figure.low == pytest.approx(figure.value)
        assert figure.high == pytest.approx(figure.value)
    apart = compared(frame, resamples=100).figures
    assert apart["spearman"].low < apart["spearman"].value <= apart["spearman"].high
    # The rewards differ by two swapped neighbours of one outcome, so the gain stays small in every resample.
    assert (apart["corr_gain"].low, apart["corr_gain"].high) == pytest.approx((0.0, 0.0), abs=0.05)
    assert apart["spearman"].resamples == 100


def test_a_comparison_without_scores_raises_an_error() -> None:
    unscored = scores(OLD, SWAPPED, UPPER).with_columns(reward=pl.lit(None, pl.Float64))
    for frame in (unscored, unscored.head(0)):
        with pytest.raises(RC1Error, match=r"weight .*\b0 .*scores\b"):
            compared(frame)


def test_unstable_rows_count_less_and_unscored_rows_not_at_all(
    fresh_copy: Callable[..., Run], gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The samples disagree on the first dialogue, and the second has a missing score."""
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    monkeypatch.setattr(client, "BAD_REPLY_ATTEMPTS", 1)
    run = fresh_copy(
        *overrides(gateway.url), "judge.samples=2", "judge.limits.concurrency=[1,1]",
    )  # fmt: skip

    def reply(number: int, body: str, headers: dict[str, str]) -> Reply:
        grade = 0.9 if number == 1 else 0.1
        scored = orjson.dumps({"reason": "Fine.", **dict.fromkeys(GRADED, grade)}).decode()
        return completion("no idea" if number == 2 else scored)

    gateway.replies = reply
    judged = judge_rows(run, Evidence(run).rows("shadow").head(3))
    assert judged.rows["unstable"].to_list() == [True, False, False]
    assert judged.rows["scored"].to_list() == [True, False, True]
    assert judged.rows["weight"].to_list() == [UNSTABLE_WEIGHT, 0.0, 1.0]
    assert judged.rows["answered"].to_list() == [0.5, None, 0.1]
    assert judged.coverage == pytest.approx(2 / 3)
    summary = scoring(run, judged)
    assert [lost["id"] for lost in summary["unscored"]] == [judged.rows["id"][1]]
    assert summary["unscored"][0]["reason"]
    assert summary["unstable"] == [judged.rows["id"][0]]
    rewarded = with_reward(run, judged.rows, {"answered": 0.5, "obtained": 0.5}).with_columns(group="source_id")
    assert rewarded["reward"].is_null().to_list() == rewarded["old"].is_null().to_list() == [False, True, False]
    found = compared(rewarded)
    assert (found.rows, found.weight) == (2, 1.0 + UNSTABLE_WEIGHT)
