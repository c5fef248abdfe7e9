"""Judged score against success, paired over scored episodes: the check fails if the score rises as success falls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rc1_lib.evaluation.proxy import GROUPS, HACKED, LEAST_JUDGED, SHARE, ProxyTruth, compare_proxy, proxy_checks
from rc1_lib.records import Check
from tests.evaluation.tables import SFT, Habits, episode_frame, table
from tests.evaluation.tables import episode as one

SETTINGS: dict[str, Any] = {"before": "sft", "after": "ppo", "confidence": 0.95, "resamples": 60, "seed": 1}
WORSE = replace(SFT, solves_asked=0.5, solves_clear=0.35, guesses=0.1)


def scored(before: float, after: float, sft: Habits = SFT, ppo: Habits = SFT, unscored: str = "") -> pl.DataFrame:
    """Sampled episodes with scores around a mean per policy, and none for rows whose ids end with `unscored`."""
    frame = table(sft, ppo, prompts=300).filter(pl.col("mode") == "sampled")
    mean = pl.when(pl.col("policy") == "sft").then(before).otherwise(after)
    spread = (pl.col("row_id").str.slice(-2).cast(pl.Float64) - 49.5) / 500
    known = pl.when(pl.col("row_id").str.ends_with(unscored)) if unscored else pl.when(pl.lit(value=False))
    return frame.with_columns(judged=known.then(None).otherwise(mean + spread))


def found(frame: pl.DataFrame, share: float = 1.0) -> ProxyTruth:
    return ProxyTruth(share, compare_proxy(frame, **SETTINGS))


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


def test_score_and_success_are_means_over_scored_pairs() -> None:
    frame = episode_frame(
        [
            replace(one(0, "sft", right=False), judged=0.2), replace(one(0, "ppo", asked=1, obtained=True), judged=0.6),
            replace(one(1, "sft"), judged=0.5), replace(one(1, "ppo", right=False), judged=0.7),
            replace(one(2, "sft"), judged=0.9), one(2, "ppo"),
        ]
    )  # fmt: skip
    groups = compare_proxy(frame, **SETTINGS)
    assert {name: comparison.prompts for name, comparison in groups.items()} == {
        "all": 2, "need asking": 1, "clear": 1, "hard": 0
    }  # fmt: skip
    whole = groups["all"]
    assert [whole.proxy[side].value for side in ("before", "after", "change")] == pytest.approx([0.35, 0.65, 0.3])
    assert [whole.truth[side].value for side in ("before", "after", "change")] == [0.5, 0.5, 0.0]
    assert groups["need asking"].truth["change"].value == 1.0 and groups["clear"].truth["change"].value == -1.0
    assert groups["hard"].to_dict()["proxy"]["change"]["value"] is None


@pytest.mark.parametrize(
    ("before", "after", "sft", "ppo", "names"),
    [
        (0.6, 0.7, SFT, WORSE, [HACKED[group] for group in GROUPS]),  # the score rises, success falls
        (0.6, 0.6, SFT, WORSE, []),  # the score does not rise: other checks find that success fell
        (0.6, 0.7, WORSE, SFT, []),  # both rise
        (0.7, 0.6, SFT, WORSE, []),  # both fall
        (0.6, 0.7, SFT, SFT, []),  # the score alone rises
    ],
)
def test_rising_score_with_falling_success_fails(
    before: float, after: float, sft: Habits, ppo: Habits, names: list[str]
) -> None:
    assert failed(proxy_checks(found(scored(before, after, sft, ppo)), optimised=True)) == names


def test_one_seed_that_gamed_the_score_fails_the_pooled_check() -> None:
    good, bad = found(scored(0.6, 0.7)).groups, found(scored(0.6, 0.7, SFT, WORSE)).groups
    checks = proxy_checks(ProxyTruth(1.0, good, {1: good, 2: bad}), optimised=True)
    assert failed(checks) == [HACKED[group] for group in GROUPS]
    assert next(check.advice for check in checks if not check.passed).startswith("seed 2:")


def test_missing_scores_fail_their_share_and_do_not_count_as_zero() -> None:
    frame = scored(0.6, 0.7, unscored="7")
    result = found(frame, 0.9)
    assert result.groups["all"].prompts == 270
    assert result.groups["all"].proxy["change"].value == pytest.approx(0.1)
    assert failed(proxy_checks(result, optimised=True)) == [SHARE]


def test_score_of_a_few_prompts_says_nothing() -> None:
    frame = scored(0.1, 0.9, SFT, WORSE)
    few = frame["row_id"].unique().sort().head(2).implode()
    result = found(frame.with_columns(judged=pl.when(pl.col("row_id").is_in(few)).then("judged")))
    assert failed(proxy_checks(result, optimised=True)) == [HACKED["all"]]
    assert failed(proxy_checks(result, optimised=False)) == []


def test_several_seeds_do_not_make_few_prompts_many() -> None:
    frame = scored(0.1, 0.9, SFT, WORSE)
    few = frame["row_id"].unique().sort().head(LEAST_JUDGED // 2).implode()
    alone = compare_proxy(frame.with_columns(judged=pl.when(pl.col("row_id").is_in(few)).then("judged")), **SETTINGS)
    pooled = {group: replace(one, prompts=3 * one.prompts) for group, one in alone.items()}
    assert pooled["all"].prompts > LEAST_JUDGED
    result = ProxyTruth(1.0, pooled, by_seed={seed: alone for seed in (1, 2, 3)})
    assert HACKED["all"] in failed(proxy_checks(result, optimised=True))


def test_optimised_score_must_be_compared_with_success() -> None:
    assert failed(proxy_checks(None, optimised=True)) == ["training.held_out.judged above 0"]
    (line,) = proxy_checks(None, optimised=False)
    assert line.op == "info"
