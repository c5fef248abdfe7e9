"""The shadow run: compares old score and new reward on the same held-out dialogues, and writes report and pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from rc1_lib.calibration.judged_rows import AsksJudge, dimensions, judge_checks, judge_rows, scoring, with_reward
from rc1_lib.calibration.shadow_checks import baseline_gate, shadow_run_gate
from rc1_lib.calibration.weights_file import read_weights
from rc1_lib.checks import info
from rc1_lib.errors import ConfigError
from rc1_lib.gate_report import PLOTS, GateReport, write_report
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.plots import reward as plots
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW
from rc1_lib.provenance.derived import fingerprint
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.comparison import Comparison, compare
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import atomic_write

BASELINE, CALIBRATED, PRE_RUN = "baseline", "calibrated", "pre_run_check"
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
OF_THE_FLOW = (BASELINE, CALIBRATED)
"""Tags reserved for the calibration."""
_OF_THE_PRIOR = info("weights", "those of the old score: the calibration's prior; rc1 weight-calib fits others")
_Gate = Callable[[Comparison, float], GateResult]


def report_path(tag: str) -> str:
    """Return the path of the report of the shadow run with this tag.

    Raises:
        ConfigError: when the tag is not a file name.
    """
    if not _TAG.fullmatch(tag):
        raise ConfigError(
            f"tag '{tag}': expected up to 64 letters, digits, '_', '.' or '-', the first a letter or digit, as in "
            f"pre_run_check"
        )
    return f"reports/shadow_run_{tag}.json"


def baseline_run(run: Run, *, judge: AsksJudge = judge_rows) -> GateReport:
    """Check before a calibration whether a comparison is possible: use the old weights for the new reward too.

    `judge` scores rows like `judge_rows`.
    """
    return _compare(run, BASELINE, run.config.reward.old_weights, baseline_gate, judge)


def shadow_run(
    run: Run, tag: str, weights: Mapping[str, float] | None = None, *, judge: AsksJudge = judge_rows
) -> GateReport:
    """Compare the old score with the new reward on the shadow set, and write report and pictures.

    Args:
        run: supplies shadow set, judge and thresholds.
        tag: part of the report's name.
        weights: of the new reward; default: the weights in force.
        judge: scores rows, like `judge_rows`.

    Raises:
        RC1Error: when there are no weights, or the judge cannot be asked.
    """
    chosen = read_weights(run, dimensions(run)) if weights is None else weights
    prior = (_OF_THE_PRIOR,) if chosen == run.config.reward.old_weights else ()
    gate = partial(shadow_run_gate, thresholds=run.config.gates.shadow_run)
    return _compare(run, tag, chosen, gate, judge, prior)


def _compare(
    run: Run,
    tag: str,
    weights: Mapping[str, float],
    gate_of: _Gate,
    judge: AsksJudge,
    further: Sequence[Check] = (),
) -> GateReport:
    path = report_path(tag)
    judged = judge(run, rows_of(run, SHADOW))
    frame = with_reward(run, judged.rows, weights).with_columns(group="source_id")
    compared = compare(
        frame,
        weighed=[name for name, weight in weights.items() if weight > 0],
        confidence=CONFIDENCE,
        resamples=run.config.gates.shared.resamples,
        seed=run.config.shadow.seed,
    )
    gate = gate_of(compared, judged.coverage)
    gate = replace(gate, checks=(*further, *gate.checks, *judge_checks(run, judged.models)))
    terms = _write_terms(run, tag, frame)
    body = {
        "tag": tag,
        "shadow": fingerprint(SHADOW, run),
        **compared.to_dict(),
        "weights": dict(weights),
        "old_weights": dict(run.config.reward.old_weights),
        "penalty": {**run.config.overclar.model_dump(mode="json"), "on": run.config.use_overclar_penalty},
        "difficulty_beta": run.config.difficulty_beta,
        "scoring": scoring(run, judged),
        "terms": terms,
    }
    return write_report(run, path, gate, body, _draw(run, tag, frame, compared))


def _write_terms(run: Run, tag: str, frame: pl.DataFrame) -> str:
    """Write every reward term of every row, so that rows can be audited by hand."""
    relative = _rows_path(tag)
    with atomic_write(run.workspace.path(relative)) as stream:
        frame.write_ndjson(stream)
    return relative


def _rows_path(tag: str) -> str:
    return f"reports/shadow_run_{tag}.rows.jsonl"


def _pictures(tag: str) -> dict[str, str]:
    return {
        "reliability": f"{PLOTS}/shadow_{tag}_reliability.png",
        "by difficulty": f"{PLOTS}/shadow_{tag}_difficulty.png",
    }


def _draw(run: Run, tag: str, frame: pl.DataFrame, compared: Comparison) -> dict[str, str]:
    known = frame.filter(pl.col("reward").is_not_null())
    files = _pictures(tag)
    reliability, buckets = (run.workspace.path(file) for file in files.values())
    plots.reliability(reliability, known, {"old score": "old", "new reward": "reward"}, outcome="solved")
    plots.by_bucket(buckets, compared.split["difficulty"])
    return files
