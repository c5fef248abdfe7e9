"""A real judge against real people: the LLM-Rubric data, whose criteria are weak and whose people disagree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.run import published_config

Vector = NDArray[np.float64]
QUESTIONS = tuple(f"Q{number}" for number in range(1, 9))
ANSWERS = (1, 2, 3, 4)
SETTINGS = published_config().calibration
GATE = published_config().gates.calibration


@pytest.fixture(scope="module")
def rated(shared_data: Path) -> pl.DataFrame:
    """One row per text and person: the judge's expected answers Q1..Q8 and the person's overall Q0, all in [0, 1]."""
    folder = shared_data / "llm_rubric" / "synth_data"
    judge = pl.read_csv(folder / "gpt-3.5-turbo-16k_synth_evaluations_FIXED.tsv", separator="\t")
    expected = pl.sum_horizontal((answer - 1) * pl.col(f"answer{answer}_prob") for answer in ANSWERS)
    mass = pl.sum_horizontal(f"answer{answer}_prob" for answer in ANSWERS)
    dimensions = judge.with_columns(score=expected / mass / (len(ANSWERS) - 1)).pivot(
        "criterion", index="text_id", values="score"
    )
    people = pl.read_csv(folder / "human_judges_synth_all_FIXED_ANON.tsv", separator="\t")
    # 0 means that the person did not answer.
    overall = people.filter(pl.col("Q0") > 0).select("text_id", target=(pl.col("Q0") - 1) / (len(ANSWERS) - 1))
    return overall.join(dimensions.select("text_id", *QUESTIONS), on="text_id", how="left", maintain_order="left")


def calibrated(rated: pl.DataFrame, target: Vector | None = None) -> Calibration:
    """Calibrate with the published settings and equal prior weights, grouped by text."""
    return calibrate_weights(
        rated.select(QUESTIONS).to_numpy(),
        rated["target"].to_numpy() if target is None else target,
        rated["text_id"].to_numpy(),
        names=QUESTIONS,
        prior={question: 1 / len(QUESTIONS) for question in QUESTIONS},
        l2=SETTINGS.l2,
        max_weight=published_config().gates.weights.max_weight,
        cv=SETTINGS.cv,
        boot=SETTINGS.boot,
        seed=SETTINGS.seed,
        confidence=CONFIDENCE,
    )


def test_calibrated_weights_rank_better_than_equal_ones(rated: pl.DataFrame) -> None:
    """On held-out texts the gain exceeds the gate's threshold, its interval is above 0, and the errors fall too."""
    found = calibrated(rated)
    assert (found.rows, found.groups, found.unscored) == (662, 223, 73)
    assert max(found.kkt_residual, found.refits_kkt_residual) <= 1e-9
    assert found.improve_pct_vs_equal >= GATE.min_improve_pct
    assert found.intervals["spearman_gain_vs_equal"].low >= 0
    assert found.intervals["improve_pct_vs_equal"].low >= GATE.min_improve_pct
    assert found.mae_drop_pct_vs_equal >= GATE.min_mae_drop_pct
    assert found.intervals["mae_drop_pct_vs_equal"].low >= 0
    # The judge is still weak: equal weights correlate with almost nothing, which makes the percentage huge.
    assert found.median_spearman["equal"] < 0.05 < found.median_spearman["calibrated"] < 0.3


def test_shuffled_labels_give_no_gain(rated: pl.DataFrame) -> None:
    shuffled = np.random.default_rng(0).permutation(rated["target"].to_numpy())
    found = calibrated(rated, shuffled)
    assert found.intervals["spearman_gain_vs_equal"].low < 0
