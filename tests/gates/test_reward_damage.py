"""The four reward gates pass on the small real pool, and fail for the right reason on damaged scores.

Damage from the start also reaches the calibration, which fits new weights to it. Damage since the calibration meets
the weights in force, as in the check before every training run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import polars as pl
import pytest

from rc1_lib.calibration.judged_rows import dimensions, judge_rows, with_reward
from rc1_lib.calibration.overclar_ablation import ablation_gate
from rc1_lib.calibration.shadow_checks import baseline_gate, shadow_run_gate
from rc1_lib.calibration.weight_calib import calibration_gate, calibration_rows
from rc1_lib.calibration.weights_file import read_weights
from rc1_lib.evidence import Evidence
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.pool.takes import by_prompt
from rc1_lib.records import GateResult
from rc1_lib.reward.ablation import ablate
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.reward.comparison import Comparison, compare
from rc1_lib.reward.rules import RULES
from rc1_lib.run import Run
from tests.gates.verdicts import advice

COVERAGE = "scored, share"
LENGTH_OLD = "old score follows the answers' length, rank correlation"
REPEATED = "weighed dimensions that repeat another one, share"
STUCK = "weighed dimensions stuck on one grade"
ERROR = "mean absolute error lowered, per cent"
CORRELATION = "rank correlation of the calibrated weights"
SPEARMAN, TOP_OVERLAP, SUCCESS_CORRELATION = "spearman", "top10_overlap", "corr_to_success_new"
ABLATION = {"overclar_ablation": {"rate drop, %"}}
"""A side effect of damaged scores: weights near the old ones punish every question, so the penalty changes nothing."""
# The verdicts do not use the intervals: few samples keep the tests fast.
RESAMPLES, SEED = 4, 1

Weights = Mapping[str, float]
Failures = dict[str, set[str]]
Damage = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Judged:
    """The judge's scores of shadow set, calibration rows and rollouts."""

    shadow: pl.DataFrame
    rows: pl.DataFrame
    takes: pl.DataFrame

    def damaged(self, damage: Damage) -> Judged:
        return Judged(*map(damage, (self.shadow, self.rows, self.takes)))


class RewardGates:
    """The four gates, in the order of the calibration."""

    def __init__(self, run: Run) -> None:
        self.config, self.run = run.config, run
        self.names = dimensions(run)
        self.judges = [name for name in self.names if name not in RULES]
        self.in_force = read_weights(run, self.names)

    def calibrate(self, judged: Judged) -> tuple[Calibration, GateResult]:
        gates, settings, rows = self.config.gates, self.config.calibration, judged.rows
        scored = rows.filter("scored")
        found = calibrate_weights(
            rows.select(self.names).cast(pl.Float64).fill_null(float("nan")).to_numpy(),
            rows["solved"].cast(pl.Float64).to_numpy(),
            rows["source_id"].to_numpy(),
            names=self.names,
            prior=self.config.reward.old_weights,
            l2=settings.l2,
            max_weight=gates.weights.max_weight,
            cv=settings.cv,
            boot=RESAMPLES,
            seed=settings.seed,
            row_weights=rows["weight"].to_numpy(),
            confidence=CONFIDENCE,
        )
        outcomes = int(scored["solved"].sum()), int((~scored["solved"]).sum())
        return found, calibration_gate(found, coverage(rows), outcomes, gates.calibration)

    def baseline(self, shadow: pl.DataFrame) -> GateResult:
        compared = self._compare(shadow, self.config.reward.old_weights)
        return baseline_gate(compared, coverage(shadow))

    def shadow_run(self, shadow: pl.DataFrame, weights: Weights) -> GateResult:
        return shadow_run_gate(self._compare(shadow, weights), coverage(shadow), self.config.gates.shadow_run)

    def ablation(self, takes: pl.DataFrame, weights: Weights) -> GateResult:
        rewarded = with_reward(self.run, by_prompt(takes), weights)
        ablated = ablate(rewarded, confidence=CONFIDENCE, resamples=RESAMPLES, seed=SEED)
        return ablation_gate(ablated, coverage(takes), self.config.gates.ablation)

    def from_the_start(self, judged: Judged) -> Failures:
        """Return the failing gates if the calibration sees the damage too."""
        found, calibration = self.calibrate(judged)
        ablation, shadow = self.ablation(judged.takes, found.weights), self.shadow_run(judged.shadow, found.weights)
        return failures_of(self.baseline(judged.shadow), calibration, ablation, shadow)

    def since(self, judged: Judged) -> Failures:
        """Return the failing gates if the weights in force meet damage that the calibration did not see."""
        ablation, shadow = self.ablation(judged.takes, self.in_force), self.shadow_run(judged.shadow, self.in_force)
        return failures_of(self.baseline(judged.shadow), ablation, shadow)

    def _compare(self, shadow: pl.DataFrame, weights: Weights) -> Comparison:
        return compare(
            with_reward(self.run, shadow, weights).with_columns(group="source_id"),
            weighed=[name for name, weight in weights.items() if weight > 0],
            confidence=CONFIDENCE,
            resamples=RESAMPLES,
            seed=SEED,
        )


def coverage(frame: pl.DataFrame) -> float:
    return int(frame["scored"].sum()) / frame.height


def failures_of(*results: GateResult) -> Failures:
    """Return the failing gates with their failed checks, after asserting that each has advice."""
    assert all(check.advice for result in results for check in result.failures)
    return {result.name: {check.name for check in result.failures} for result in results if result.failures}


@pytest.fixture(scope="module")
def gates(built: Run) -> RewardGates:
    return RewardGates(built)


@pytest.fixture(scope="module")
def judged(built: Run) -> Judged:
    """Read the stored scores once; the tests damage them in memory."""
    evidence = Evidence(built)
    files = evidence.rows("shadow"), calibration_rows(built), evidence.rows("takes")
    scored = [
        judge_rows(built, rows).rows.join(_lengths(rows), on="id", how="left", maintain_order="left") for rows in files
    ]
    return Judged(*scored)


def _lengths(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the number of characters in all messages of each dialogue."""
    texts = pl.col("messages").list.eval(pl.element().struct.field("content").str.len_chars())
    return rows.select("id", length=texts.list.sum().cast(pl.Float64))


def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(frame["solved"].shuffle(seed=0))


def constant(name: str) -> Damage:
    return lambda frame: frame.with_columns(pl.when(pl.col(name).is_not_null()).then(0.7).alias(name))


def half_unscored(frame: pl.DataFrame) -> pl.DataFrame:
    lost = pl.int_range(pl.len()) % 2 == 0
    graded = [name for name, kind in frame.schema.items() if kind == pl.Float64 and name not in ("weight", "length")]
    return frame.with_columns(
        *(pl.when(~lost).then(pl.col(name)).alias(name) for name in graded),
        scored=~lost,
        weight=pl.when(lost).then(0.0).otherwise("weight"),
    )


def test_intact_scores_pass_every_gate(gates: RewardGates, judged: Judged) -> None:
    assert gates.from_the_start(judged) == {}
    assert gates.since(judged) == {}


def test_shuffled_labels_fail_calibration_and_shadow_run(gates: RewardGates, judged: Judged) -> None:
    """Weights fitted to noise stay near the old ones."""
    from_start = gates.from_the_start(judged.damaged(shuffled))
    assert set(from_start) == {"calibration", "shadow_run", *ABLATION}
    assert ERROR in from_start["calibration"]
    assert SUCCESS_CORRELATION in from_start["shadow_run"]
    since = gates.since(judged.damaged(shuffled))
    assert set(since) == {"shadow_run"} and SUCCESS_CORRELATION in since["shadow_run"]
    _, calibration = gates.calibrate(judged.damaged(shuffled))
    assert "equally well, or badly" in advice(calibration, ERROR)
    shadow = gates.shadow_run(shuffled(judged.shadow), gates.in_force)
    assert "more or better judged dialogues" in advice(shadow, SUCCESS_CORRELATION)


def test_every_shuffle_of_the_labels_fails_the_calibration(gates: RewardGates, judged: Judged) -> None:
    """Some shuffles correlate by chance; the error check still fails then."""
    for seed in range(10):
        rows = judged.rows.with_columns(judged.rows["solved"].shuffle(seed=seed))
        _, result = gates.calibrate(replace(judged, rows=rows))
        assert ERROR in {check.name for check in result.failures}


def test_a_weighted_dimension_stuck_on_one_grade_fails_by_name(gates: RewardGates, judged: Judged) -> None:
    """Each weighted dimension in turn; the gates name it."""
    weighed = [name for name, weight in gates.in_force.items() if weight > 0]
    assert len(weighed) >= 4
    for name in weighed:
        damaged = judged.damaged(constant(name))
        since = gates.since(damaged)
        assert set(since) - {*ABLATION} == {"shadow_run"}, name
        assert STUCK in since["shadow_run"], name
        found, calibration = gates.calibrate(damaged)
        if found.weights[name] > 0:
            assert set(gates.from_the_start(damaged)) - {*ABLATION} == {"calibration", "shadow_run"}, name
            stuck = next(check for check in calibration.failures if check.name == STUCK)
            assert stuck.value == f"{name} 0.7"
            assert "fix the judge" in stuck.advice
        else:
            # The calibration dropped it. tests/calibration evaluates adversarial policies with such weights.
            assert set(gates.from_the_start(damaged)) - {*ABLATION} <= {"shadow_run"}, name


@pytest.mark.parametrize("grow", [lambda x: x, pl.Expr.rank], ids=["linear", "rank"])
def test_a_judge_that_grades_by_length_fails_the_shadow_run(
    gates: RewardGates, judged: Judged, grow: Callable[[pl.Expr], pl.Expr]
) -> None:
    """The rules contradict such a judge, so the new reward contradicts the old score."""
    grade = grow(pl.col("length")) / grow(pl.col("length")).max()
    damaged = judged.damaged(lambda frame: frame.with_columns(grade.alias(name) for name in gates.judges))
    for found in (gates.from_the_start(damaged), gates.since(damaged)):
        assert {TOP_OVERLAP, REPEATED} <= found["shadow_run"] <= {SPEARMAN, TOP_OVERLAP, REPEATED}
        assert set(found) <= {"shadow_run", *ABLATION}


@pytest.mark.parametrize("grow", [lambda x: x, pl.Expr.rank], ids=["linear", "rank"])
def test_a_judge_that_prefers_long_answers_fails_the_length_check(
    gates: RewardGates, judged: Judged, grow: Callable[[pl.Expr], pl.Expr]
) -> None:
    """Good answers are longer here too, so only the length check finds it."""
    length = pl.col("answer_length").cast(pl.Float64)
    grade = grow(length) / grow(length).max()
    damaged = judged.damaged(lambda frame: frame.with_columns(grade.alias(name) for name in gates.judges))
    for failures in (gates.from_the_start(damaged), gates.since(damaged)):
        assert set(failures) == {"shadow_baseline", "shadow_run"}
        assert failures["shadow_baseline"] == {LENGTH_OLD}
        assert LENGTH_OLD in failures["shadow_run"]
    assert "the judge grades length" in advice(gates.baseline(damaged.shadow), LENGTH_OLD)


def test_reversed_scores_of_the_judge_fail_the_shadow_run(gates: RewardGates, judged: Judged) -> None:
    """Only the rules still predict success, so the calibration relies on them, against the old score."""
    damaged = judged.damaged(lambda frame: frame.with_columns((1 - pl.col(name)).alias(name) for name in gates.judges))
    for failures in (gates.from_the_start(damaged), gates.since(damaged)):
        assert failures["shadow_run"] >= {SPEARMAN, TOP_OVERLAP}
        assert set(failures) <= {"shadow_run", *ABLATION}
    found, _ = gates.calibrate(damaged)
    assert found.weights["obtained"] == pytest.approx(gates.config.gates.weights.max_weight)
    assert "the other way round" in advice(gates.shadow_run(damaged.shadow, found.weights), SPEARMAN)


def test_reversed_scores_of_judge_and_rules_fail_calibration_and_shadow_run(gates: RewardGates, judged: Judged) -> None:
    """Old score and new reward are then wrong in the same way."""
    damaged = judged.damaged(lambda frame: frame.with_columns((1 - pl.col(name)).alias(name) for name in gates.names))
    from_start = gates.from_the_start(damaged)
    assert set(from_start) == {"calibration", "shadow_run", *ABLATION}
    assert from_start["calibration"] == {CORRELATION}
    assert SUCCESS_CORRELATION in from_start["shadow_run"]
    since = gates.since(damaged)
    assert set(since) - {*ABLATION} == {"shadow_run"}
    assert since["shadow_run"] >= {SPEARMAN, SUCCESS_CORRELATION}
    assert "failures first" in advice(gates.calibrate(damaged)[1], CORRELATION)


def test_missing_scores_for_half_of_the_dialogues_fail_every_gate(gates: RewardGates, judged: Judged) -> None:
    """The coverage fails in every gate; apart from the choice among rollouts, the remaining rows mostly pass."""
    damaged = judged.damaged(half_unscored)
    from_start, since = gates.from_the_start(damaged), gates.since(damaged)
    assert set(from_start) == {"shadow_baseline", "calibration", "overclar_ablation", "shadow_run"}
    assert set(since) == set(from_start) - {"calibration"}
    for found in (from_start, since):
        assert all(why & {COVERAGE, "coverage"} for why in found.values())
        assert found["shadow_baseline"] == {COVERAGE}
    for result in (gates.baseline(damaged.shadow), gates.calibrate(damaged)[1]):
        assert "fix the judge" in advice(result, COVERAGE)
    assert "no score" in advice(gates.ablation(damaged.takes, gates.in_force), "coverage")
