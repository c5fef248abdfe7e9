"""Calibrate the weights of the reward."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.calibration.stages import BY_NAME, check_overwriting, evaluate_here, run_stages
from rc1_lib.extras.notebook.cards import Card, Shown
from rc1_lib.extras.notebook.off_the_loop import off_the_loop
from rc1_lib.extras.notebook.verdicts import Verdicts
from rc1_lib.run import Run

_WEIGHTS = {"dimension": pl.String, "weight": pl.Float64, "low": pl.Float64, "high": pl.Float64, "old": pl.Float64}


@dataclass(frozen=True, slots=True, repr=False)
class Weights(Shown):
    """The findings of a calibration.

    Attributes:
        weights: one row per criterion: `dimension, weight, low, high, old`; weights sum to 1, `low` and `high` are the
            ends of the interval, `old` is the weight in the old score.
        verdict: of the gate `calibration`.
        rows: number of dialogues.
        report: the report.
        written: the file of the weights in force; None if the gate failed and they did not change.
    """

    weights: pl.DataFrame
    verdict: Verdicts
    rows: int
    report: Path
    written: Path | None

    def card(self) -> Card:
        """The weights with their intervals, and the gate's verdict."""
        said = self.verdict.card()
        end = "not written: the old ones stay" if self.written is None else f"written to {self.written}"
        return Card(f"weights from {self.rows} dialogues, {end}", [said.title, *said.lines], [self.weights])


def calibrate_weights(run: Run, *, rebuild: bool = False) -> Weights:
    """Fit the weights of the reward on judged rows of the balanced pool, like `rc1 weight-calib`.

    They are written if the gate `calibration` passes. A ticket for the previous weights is no longer valid then.

    Args:
        run: from `open_run`, with a pool (`build_pool`).
        rebuild: overwrite weights, and use rows, that somebody altered or supplied.

    Raises:
        RC1Error: if there are too few rows, the judge cannot be asked, or a file was not written by RC1.
    """
    check_overwriting(run, rebuild=rebuild)
    (outcome,) = off_the_loop(lambda: run_stages(run, evaluate_here, stages=(BY_NAME["calibration"],)))
    return Weights(
        _frame(outcome.body),
        Verdicts((outcome.gate,)),
        outcome.body["calibration"]["rows"],
        run.workspace.path(outcome.report),
        run.workspace.path(run.config.weights) if outcome.passed else None,
    )


def _frame(body: Any) -> pl.DataFrame:
    intervals = body["calibration"]["intervals"]
    rows = [
        {
            "dimension": name,
            "weight": weight,
            "low": intervals[f"weight.{name}"]["low"],
            "high": intervals[f"weight.{name}"]["high"],
            "old": body["old_weights"].get(name, 0.0),
        }
        for name, weight in body["weights"].items()
    ]
    return pl.DataFrame(rows, schema=_WEIGHTS)
