"""How well the judge agrees with people: by criterion and bucket, with intervals, and as gate `judge_agreement`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.calibration.judged_rows import judge_checks
from rc1_lib.calibration.labelled_rows import LabelledRows, scored_labels
from rc1_lib.checks import defined
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.gates.judge_agreement import KAPPA, RANKS, Agreement, judge_agreement_gate
from rc1_lib.labels.label_file import BY_PEOPLE, LabelFile
from rc1_lib.reward.intervals import Interval, bootstrap
from rc1_lib.reward.rank_agreement import places, rank_correlation
from rc1_lib.reward.verdict_agreement import (
    GOOD_AT,
    VERDICT,
    corrected_share,
    judge_errors,
    kappa,
    kappa_at_matched_cut,
    matched_cut,
    on_levels,
    people_among_themselves,
    same_level,
    share,
)
from rc1_lib.run import Run

REPORT = "reports/judge_agreement.json"
SAME = "agreement"
PEOPLE_MEAN, JUDGE_MEAN = "people", "judge"
"""Means of the levels; for verdicts, the shares of good dialogues (base rates)."""
APPARENT, CORRECTED = "good, by the judge", "good, corrected"
SENSITIVITY, SPECIFICITY = "sensitivity", "specificity"
Vector = NDArray[np.float64]


def judge_agreement(
    run: Run, file: LabelFile, among: LabelFile | None = None, *, judge_again: bool = False
) -> GateReport:
    """Compare the judge with people and check the agreement.

    Args:
        run: supplies judge, weights and thresholds.
        file: the labels.
        among: dialogues whose share of good ones is wanted; default: all in the file.
        judge_again: whether to ignore scores in the file if its dialogues can be judged.

    Raises:
        RC1Error: when the judge cannot be asked.
    """
    rows = scored_labels(run, file, judge_again=judge_again)
    others = rows if among is None else scored_labels(run, among, judge_again=judge_again)
    ours = rows.labelled().filter("this_judge")
    known = (ours if ours.height else rows.labelled()).filter("scored")
    table = _table(run, rows, known)
    good = _share_good(run, rows.judged_by, known, others)
    gate = judge_agreement_gate(
        _agreement(rows, table, good),
        run.config.gates.judge_agreement,
        run.config.gates.shared,
        judge_checks(run, rows.models, rows.test_double),
    )
    body = {
        "labels": {
            "path": run.workspace.name(file.path),
            "rows": rows.labelled().height,
            "dialogues": rows.labelled()["dialogue"].n_unique(),
            "groups": rows.labelled()["group"].n_unique(),
            "annotators": rows.labelled()["annotator"].drop_nulls().n_unique(),
            "levels": list(rows.levels),
        },
        "judged_by": {"score": rows.judged_by, "weights": dict(rows.overall[rows.judged_by])},
        "verdict_at": run.config.judge.verdict_at,
        "agreement": [{**line, "figures": _plain(line["figures"])} for line in table],
        "share_good": _plain(good),
        "matched_cut": _matched_cut(run, rows, known),
        "people_among_themselves": defined(people_among_themselves(known["label"], known["dialogue"])),
        "scoring": rows.summary(),
    }
    return write_report(run, REPORT, gate, body, {})


def _agreement(rows: LabelledRows, table: list[dict[str, Any]], good: dict[str, Interval]) -> Agreement:
    labelled = rows.labelled()
    alike = [
        line["figures"][name].value
        for line in table
        for name in (SAME, RANKS)
        if line["score"] in rows.overall and line["bucket"] is None
    ]
    whole = labelled.group_by("dialogue").agg(
        pl.col("this_judge", "scored").first(),
        second=pl.col("annotator").drop_nulls().n_unique() > 1,
        good=pl.col("label").mean() >= GOOD_AT,
    )
    own = whole.filter("this_judge")
    scored = own.filter("scored")
    return Agreement(
        labelled=scored.height,
        others=whole.height - own.height,
        good=int(scored["good"].sum()),
        bad=int((~scored["good"]).sum()),
        coverage=scored.height / own.height if own.height else math.nan,
        likeness=float(np.max(alike)),  # unlike max, never hides a NaN
        second=int(scored["second"].sum()),
        figures=table[0]["figures"] | good,
    )


def _table(run: Run, rows: LabelledRows, known: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one line for each score, overall and for each bucket; the overall score that is checked comes first."""
    scores = [*reversed(list(rows.overall)), *rows.names]
    buckets: list[str | None] = [None, *known["bucket"].drop_nulls().unique().sort()]
    return [
        {
            "score": score,
            "bucket": bucket,
            **_line(run, part, score, rows.levels),
        }
        for score in scores
        for bucket in buckets
        for part in (known if bucket is None else known.filter(pl.col("bucket") == bucket),)
    ]


def _line(run: Run, part: pl.DataFrame, score: str, levels: tuple[float, ...]) -> dict[str, Any]:
    """Compare one score with people's labels: of that criterion if they graded it, else of the whole dialogue."""
    own = f"{BY_PEOPLE}{score}"
    label = own if own in part.columns and part[own].is_not_null().any() else "label"
    part = part.filter(pl.col(label).is_not_null())
    values, labels = part[score].to_numpy(), part[label].to_numpy()
    judged, people = (on_levels(column, levels, run.config.judge.verdict_at) for column in (values, labels))
    if levels == VERDICT:
        people = (labels >= GOOD_AT).astype(np.float64)
    place_of_score, place_of_label = places(values), places(labels)

    def figures(counts: Vector) -> dict[str, float]:
        drawn = counts > 0
        return {
            KAPPA: kappa(judged, people, counts),
            SAME: same_level(judged, people, counts),
            PEOPLE_MEAN: share(people, counts),
            JUDGE_MEAN: share(judged, counts),
            RANKS: rank_correlation(place_of_score[drawn], place_of_label[drawn], counts[drawn]),
        }

    return {
        "against": label,
        "labels": part.height,
        "dialogues": part["dialogue"].n_unique(),
        "figures": _intervals(run, figures, part),
    }


def _share_good(run: Run, score: str, known: pl.DataFrame, others: LabelledRows) -> dict[str, Interval]:
    """Estimate the judge's share of good dialogues, its errors on labelled ones, and the corrected share."""
    target = others.frame.filter(pl.col("scored"))
    both = pl.concat(
        [
            frame.select("group", "share", "label", pl.col(score), target=pl.lit(is_target))
            for frame, is_target in ((known, False), (target, True))
        ]
    )
    at = run.config.judge.verdict_at
    judged = (both[score] >= at).to_numpy()
    people = (both["label"] >= GOOD_AT).fill_null(False).to_numpy()
    asked = both["target"].to_numpy()

    def figures(counts: Vector) -> dict[str, float]:
        errors = judge_errors(judged, people, counts * ~asked)
        apparent = share(judged, counts * asked)
        return {
            SENSITIVITY: errors.sensitivity,
            SPECIFICITY: errors.specificity,
            APPARENT: apparent,
            CORRECTED: corrected_share(apparent, errors),
        }

    return _intervals(run, figures, both)


def _intervals(run: Run, figures: Any, part: pl.DataFrame) -> dict[str, Interval]:
    shared = run.config.gates.shared
    if not part.height:
        none = Interval(math.nan, math.nan, math.nan, shared.confidence, 0)
        return dict.fromkeys(figures(np.zeros(0)), none)
    return bootstrap(
        figures,
        groups=part["group"].to_numpy(),
        weights=part["share"].to_numpy(),
        resamples=shared.resamples,
        confidence=shared.confidence,
        seed=run.config.calibration.seed,
    )


def _matched_cut(run: Run, rows: LabelledRows, known: pl.DataFrame) -> dict[str, float | None]:
    """Find the cut at which the judge would call as many dialogues good as people do, and kappa at that cut."""
    scores, good, counts = known[rows.judged_by], known["label"] >= GOOD_AT, known["share"]
    settings = run.config.calibration
    held_out = kappa_at_matched_cut(scores, good, counts, known["group"], folds=settings.cv, seed=settings.seed)
    return {"cut": defined(matched_cut(scores, good, counts)), "kappa_on_held_out": defined(held_out)}


def _plain(figures: dict[str, Interval]) -> dict[str, Any]:
    return {name: figure.to_dict() for name, figure in figures.items()}
