"""The gates of the reward, as a set: green on the small real pool, and red for the right reason on damaged scores.

Damage comes at two times. Damage from the start is seen by the calibration, too, and the weights are what it makes of
it. Damage since the calibration meets the weights in force, as in the check before every training run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from rc1_lib.calibration.judged_rows import dimensions, judge_rows, with_reward
from rc1_lib.calibration.weight_calib import calibration_rows, weight_calib
from rc1_lib.calibration.weights_file import read_weights
from rc1_lib.evidence import Evidence
from rc1_lib.gates.calibration import calibration_gate
from rc1_lib.gates.overclar_ablation import ablation_gate
from rc1_lib.gates.shadow_run import baseline_gate, shadow_run_gate
from rc1_lib.pool.takes import by_prompt
from rc1_lib.records import GateResult
from rc1_lib.reward.ablation import ablate
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.reward.comparison import Comparison, compare
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json
from tests.gates.verdicts import advice

SHARE = "scored, share"
LENGTH_OLD = "old score follows the answers' length, rank correlation"
REPEATED = "weighed dimensions that repeat another one, share"
STUCK = "weighed dimensions stuck on one grade"
GAIN, ERROR = "rank correlation gained, per cent", "mean absolute error lowered, per cent"
RIGHT_WAY = "rank correlation of the calibrated weights"
ORDER, TOP, KNOWS, BETTER = "spearman", "top10_overlap", "corr_to_success_new", "corr_improve_pct"
RATE, ABLATION = "rate drop, %", {"overclar_ablation": {"rate drop, %"}}
"""What damage to the judge's scores also does: weights near the old ones dislike any question, and the penalty is left
nothing to do."""
# Intervals decide nothing: a few samples keep the tests fast.
RESAMPLES, SEED = 4, 1

Weights = Mapping[str, float]
Red = dict[str, set[str]]
Damage = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Judged:
    """What the judge made of the shadow set, the calibration's rows and the takes."""

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
        self.judges = [name for name in self.names if name not in run.config.reward.rules]
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
            corr_floor=gates.shared.corr_floor,
            confidence=gates.shared.confidence,
        )
        outcomes = int(scored["solved"].sum()), int((~scored["solved"]).sum())
        return found, calibration_gate(found, share(rows), outcomes, gates.calibration, gates.weights, gates.shared)

    def baseline(self, shadow: pl.DataFrame) -> GateResult:
        compared = self._compare(shadow, self.config.reward.old_weights)
        return baseline_gate(compared, share(shadow), self.config.gates.shadow_run, self.config.gates.shared)

    def shadow_run(self, shadow: pl.DataFrame, weights: Weights) -> GateResult:
        gates = self.config.gates
        return shadow_run_gate(self._compare(shadow, weights), share(shadow), gates.shadow_run, gates.shared)

    def ablation(self, takes: pl.DataFrame, weights: Weights) -> GateResult:
        gates = self.config.gates
        rewarded = with_reward(self.run, by_prompt(takes), weights)
        ablated = ablate(rewarded, confidence=gates.shared.confidence, resamples=RESAMPLES, seed=SEED)
        return ablation_gate(ablated, share(takes), gates.ablation, gates.shared)

    def from_the_start(self, judged: Judged) -> Red:
        """What turns red where all that the calibration sees is damaged."""
        found, calibration = self.calibrate(judged)
        ablation, shadow = self.ablation(judged.takes, found.weights), self.shadow_run(judged.shadow, found.weights)
        return reasons(self.baseline(judged.shadow), calibration, ablation, shadow)

    def since(self, judged: Judged) -> Red:
        """What turns red where the weights in force meet damage that the calibration did not see."""
        ablation, shadow = self.ablation(judged.takes, self.in_force), self.shadow_run(judged.shadow, self.in_force)
        return reasons(self.baseline(judged.shadow), ablation, shadow)

    def _compare(self, shadow: pl.DataFrame, weights: Weights) -> Comparison:
        shared = self.config.gates.shared
        return compare(
            with_reward(self.run, shadow, weights).with_columns(group="source_id"),
            weighed=[name for name, weight in weights.items() if weight > 0],
            corr_floor=shared.corr_floor,
            confidence=shared.confidence,
            resamples=RESAMPLES,
            seed=SEED,
        )


def share(frame: pl.DataFrame) -> float:
    return int(frame["scored"].sum()) / frame.height


def reasons(*results: GateResult) -> Red:
    """The red gates with their failed checks, each of which gives advice."""
    assert all(check.advice for result in results for check in result.failures)
    return {result.name: {check.name for check in result.failures} for result in results if result.failures}


@pytest.fixture(scope="module")
def gates(built: Run) -> RewardGates:
    return RewardGates(built)


@pytest.fixture(scope="module")
def judged(built: Run) -> Judged:
    """The judge's scores are stored: they are read here once, and damaged in memory."""
    evidence = Evidence(built)
    files = evidence.rows("shadow"), calibration_rows(built), evidence.rows("takes")
    scored = [
        judge_rows(built, rows).frame.join(_lengths(rows), on="id", how="left", maintain_order="left") for rows in files
    ]
    return Judged(*scored)


def _lengths(rows: pl.DataFrame) -> pl.DataFrame:
    """Characters of each dialogue, in all of its messages."""
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


def test_undamaged_all_are_green(gates: RewardGates, judged: Judged) -> None:
    assert gates.from_the_start(judged) == {}
    assert gates.since(judged) == {}


def test_the_calibration_here_is_the_one_in_force(gates: RewardGates, judged: Judged) -> None:
    assert gates.calibrate(judged)[0].weights == gates.in_force


def test_shuffled_labels(gates: RewardGates, judged: Judged) -> None:
    """Weights fitted to noise stay near the old ones."""
    start = gates.from_the_start(judged.damaged(shuffled))
    assert set(start) == {"calibration", "shadow_run", *ABLATION}
    assert ERROR in start["calibration"]
    assert KNOWS in start["shadow_run"]
    since = gates.since(judged.damaged(shuffled))
    assert set(since) == {"shadow_run"} and KNOWS in since["shadow_run"]
    _, calibration = gates.calibrate(judged.damaged(shuffled))
    assert "all predict it about equally well, or badly" in advice(calibration, ERROR)
    shadow = gates.shadow_run(shuffled(judged.shadow), gates.in_force)
    assert "calibrate the weights on more or better judged dialogues" in advice(shadow, KNOWS)


def test_no_shuffle_of_the_labels_gets_past_the_calibration(gates: RewardGates, judged: Judged) -> None:
    """By chance some shuffles correlate; the error then still says that nothing was learned."""
    for seed in range(25):
        rows = judged.rows.with_columns(judged.rows["solved"].shuffle(seed=seed))
        _, result = gates.calibrate(replace(judged, rows=rows))
        assert ERROR in {check.name for check in result.failures}


def test_a_dimension_stuck_on_one_grade(gates: RewardGates, judged: Judged) -> None:
    """Each that carries weight, one after the other; the gates name the one that it is."""
    weighed = [name for name, weight in gates.in_force.items() if weight > 0]
    assert len(weighed) >= 4
    for name in weighed:
        damaged = judged.damaged(constant(name))
        since = gates.since(damaged)
        assert set(since) == {"shadow_run"}, name
        assert STUCK in since["shadow_run"], name
        found, calibration = gates.calibrate(damaged)
        if found.weights[name] > 0:
            assert set(gates.from_the_start(damaged)) - {*ABLATION} == {"calibration", "shadow_run"}, name
            told = next(check for check in calibration.failures if check.name == STUCK)
            assert told.value == f"{name} 0.7"
            assert "fix the judge" in told.advice
        else:
            # The calibration gave it up. What that costs, the attack on the reward tells: tests/calibration.
            assert set(gates.from_the_start(damaged)) - {*ABLATION} <= {"shadow_run"}, name


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_judge_that_gives_every_dimension_the_old_score(gates: RewardGates, judged: Judged, noise: float) -> None:
    rng, old = np.random.default_rng(0), gates.config.reward.old_weights

    def one_impression(frame: pl.DataFrame) -> pl.DataFrame:
        score = sum((pl.col(name) * weight for name, weight in old.items()), pl.lit(0.0))
        spread = noise * frame.select(score).to_series().drop_nulls().to_numpy().std()
        drawn = {name: pl.Series(rng.normal(0.0, spread, frame.height)) for name in gates.judges}
        return frame.with_columns((score + drawn[name]).clip(0, 1).alias(name) for name in gates.judges)

    damaged = judged.damaged(one_impression)
    for found in (gates.from_the_start(damaged), gates.since(damaged)):
        assert REPEATED in found["shadow_run"]


def test_a_stuck_dimension_without_weight_harms_only_the_old_score(gates: RewardGates, judged: Judged) -> None:
    unweighed = [name for name, weight in gates.in_force.items() if not weight]
    assert unweighed
    for name in unweighed:
        since = gates.since(judged.damaged(constant(name)))
        assert since.get("shadow_run", set()) <= {TOP, BETTER, ORDER, LENGTH_OLD}, name
        assert since.get("shadow_baseline", set()) <= {LENGTH_OLD}, name
        assert set(since) <= {"shadow_baseline", "shadow_run"}, name


@pytest.mark.parametrize("grow", [lambda x: x, pl.Expr.sqrt, pl.Expr.rank], ids=["linear", "root", "rank"])
def test_a_judge_that_grades_by_length(gates: RewardGates, judged: Judged, grow: Callable[[pl.Expr], pl.Expr]) -> None:
    """The rules then speak against it, and the new reward contradicts the old score."""
    grade = grow(pl.col("length")) / grow(pl.col("length")).max()
    damaged = judged.damaged(lambda frame: frame.with_columns(grade.alias(name) for name in gates.judges))
    for found in (gates.from_the_start(damaged), gates.since(damaged)):
        assert found["shadow_run"] == {ORDER, TOP, REPEATED}
        assert set(found) <= {"shadow_run", *ABLATION}
    shadow = gates.shadow_run(damaged.shadow, gates.in_force)
    assert "reverses the old order" in advice(shadow, ORDER)
    assert "the top dialogues have changed" in advice(shadow, TOP)


@pytest.mark.parametrize("grow", [lambda x: x, pl.Expr.sqrt, pl.Expr.rank], ids=["linear", "root", "rank"])
def test_a_judge_that_prefers_long_answers(
    gates: RewardGates, judged: Judged, grow: Callable[[pl.Expr], pl.Expr]
) -> None:
    """Good answers are longer here too, so its order looks like a good one: but it has no other."""
    length = pl.col("answer_length").cast(pl.Float64)
    grade = grow(length) / grow(length).max()
    damaged = judged.damaged(lambda frame: frame.with_columns(grade.alias(name) for name in gates.judges))
    for red in (gates.from_the_start(damaged), gates.since(damaged)):
        assert set(red) == {"shadow_baseline", "shadow_run"}
        assert red["shadow_baseline"] == {LENGTH_OLD}
        assert LENGTH_OLD in red["shadow_run"]
    assert "the judge grades length" in advice(gates.baseline(damaged.shadow), LENGTH_OLD)


def test_a_judge_whose_scores_are_reversed(gates: RewardGates, judged: Judged) -> None:
    """Only the rules are left to know success, so the calibration leans on them, against the old score."""
    damaged = judged.damaged(lambda frame: frame.with_columns((1 - pl.col(name)).alias(name) for name in gates.judges))
    for red in (gates.from_the_start(damaged), gates.since(damaged)):
        assert red["shadow_run"] == {ORDER, TOP}
        assert set(red) <= {"shadow_run", *ABLATION}
    found, _ = gates.calibrate(damaged)
    assert found.weights["obtained"] == pytest.approx(gates.config.gates.weights.max_weight)
    assert "reverses the old order" in advice(gates.shadow_run(damaged.shadow, found.weights), ORDER)


def test_all_scores_reversed(gates: RewardGates, judged: Judged) -> None:
    """Old score and new reward then agree on what is wrong."""
    damaged = judged.damaged(lambda frame: frame.with_columns((1 - pl.col(name)).alias(name) for name in gates.names))
    start = gates.from_the_start(damaged)
    assert set(start) == {"calibration", "shadow_run", *ABLATION}
    assert start["calibration"] == {RIGHT_WAY}
    assert KNOWS in start["shadow_run"]
    since = gates.since(damaged)
    assert set(since) - {*ABLATION} == {"shadow_run"}
    assert since["shadow_run"] >= {ORDER, KNOWS}
    assert "failures first" in advice(gates.calibrate(damaged)[1], RIGHT_WAY)


def test_half_unscored(gates: RewardGates, judged: Judged) -> None:
    """What is left would mostly pass, but for the choice among the takes; the coverage is a reason everywhere."""
    damaged = judged.damaged(half_unscored)
    everywhere = {
        "shadow_baseline": {SHARE},
        "calibration": {SHARE},
        "overclar_ablation": {"coverage", RATE},
        "shadow_run": {SHARE, ORDER, TOP},
    }
    assert gates.from_the_start(damaged) == everywhere
    assert gates.since(damaged) == {name: why for name, why in everywhere.items() if name != "calibration"}
    for result in (gates.baseline(damaged.shadow), gates.calibrate(damaged)[1]):
        assert "fix the judge" in advice(result, SHARE)
    assert "score the dialogues that have no score" in advice(gates.ablation(damaged.takes, gates.in_force), "coverage")


def test_the_steps_name_constant_dimensions(built: Run, fresh_copy: Callable[..., Run]) -> None:
    """Every dialogue of this teacher is answered, well formed and brief: no fault even where weight stands on it."""
    assert read_json(built.workspace.path("reports/shadow_run_baseline.json"))["constant"] == {
        "answered": 1.0,
        "concise": 1.0,
        "well_formed": 1.0,
    }
    assert read_json(built.workspace.path("reports/shadow_run_calibrated.json"))["constant"] == {"answered": 1.0}
    pulled = weight_calib(
        fresh_copy("judge.samples=1", "calibration.n=40", "calibration.boot=20", "calibration.l2=100")
    )
    assert pulled.body["weights"]["well_formed"] > 0
    assert pulled.body["calibration"]["constant"] == {"answered": 1.0, "concise": 1.0, "well_formed": 1.0}
    told = {check.name: check for check in pulled.gate.checks}
    assert told[STUCK].passed
    assert (
        told["weighed dimensions that say the same of every dialogue"].value == "answered 1, well_formed 1, concise 1"
    )
