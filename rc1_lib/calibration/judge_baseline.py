"""The fixed set of dialogues with a judge's first scores, and the scores when asked again.

The set is written once. It belongs to one judge (provider, requested model, fingerprint of the instructions) and
depends on nothing else: neither code changes nor a new shadow set put it out of date. A new judge, or the same one
after drift, gets a new baseline only after somebody has moved the old one away, and only of grades on which the weights
rest: a recording of newer ones would be the cheapest way to pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import nan

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from rc1_lib.calibration.derived import JUDGE_BASELINE, WEIGHTS, Body, another, read_baseline
from rc1_lib.calibration.judged_rows import real_checks
from rc1_lib.checks import at_least, equal, info, within
from rc1_lib.config.judge import BASELINE_PATH
from rc1_lib.errors import RC1Error
from rc1_lib.judge.judge import Judge, check_judge, fresh_scores, open_judge, open_store
from rc1_lib.judge.noise import OVERALL
from rc1_lib.judge.prompt import dialogue_sha256, judge_identity, read_spec
from rc1_lib.judge.providers import LIVE
from rc1_lib.judge.results import Judged
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW
from rc1_lib.provenance.derived import NOT_OURS
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState, now, read_manifest, recorded_write

# Drift: the same judge version grades the same dialogues as before, within a fixed bound.

GATE, ORDER = "judge_drift", "overall: correlation with the grades of then"
MIN_DIALOGUES = 30
"""Fewest dialogues to compare, and to record: half of the published set."""
MIN_COVERAGE = 0.9
"""Smallest share of the set with a score: less than elsewhere, since only dialogues scored both times are compared."""
_MAX_SHIFT = 0.08
"""By how much the medians of a dimension may move in the mean, up or down: as if eight of a hundred
dialogues had gone from 0 to 1."""
_MIN_ORDER, _LEAST_SPREAD = 0.5, 0.1
"""Smallest correlation of the dialogues' grades with those of then: a judge that gave its grades to other dialogues
would keep every mean. Where those of then had a standard deviation below the second number, noise decides the order."""
_MOVED = (
    "the judge grades differently than when the baseline was recorded, whatever its version is called: find out what "
    "changed at the provider. The weights were calibrated on the old grades, so calibrate again before you start a new "
    "baseline (docs/judge.md says how)"
)
_RENAMED = (
    "a version answers that was not used for calibration, even if its grades are the same: name the old one in "
    "judge.model if the provider still has it; else calibrate again, then start a new baseline (docs/judge.md says how)"
)


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The result of asking about the fixed set tonight.

    Attributes:
        dialogues: number of dialogues in the set.
        scored: number of them that were scored tonight with every sample.
        why_unscored: the most frequent reasons for missing scores, in words.
        versions: the model versions that answered for the baseline, and those that answered tonight.
    """

    dialogues: int
    scored: int
    why_unscored: str
    versions: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Moved:
    """How grades moved between two times.

    Attributes:
        shift: dimension or `overall` -> mean difference of the medians of a dialogue's samples.
        order: correlation of the dialogues' overall means then and now; NaN if those of one time are all equal.
        spread: standard deviation of the means of then, over dialogues.
    """

    shift: Mapping[str, float]
    order: float
    spread: float


def judge_drift_gate(moved: Moved, asked: AskedAgain, recorded: str) -> GateResult:
    """Check that the model version has not changed, that medians have not moved in the mean, and their order stays.

    Args:
        moved: how the grades moved, over the dialogues scored both times.
        asked: the result of asking about the fixed set.
        recorded: when the baseline was recorded.
    """
    share = asked.scored / asked.dialogues if asked.dialogues else 0.0
    checks = [
        at_least(
            "scored again, share", share, MIN_COVERAGE,
            f"dialogues without a score tonight, by reason: {asked.why_unscored or 'the judge was not asked'}; they "
            f"cannot be compared",
        ),
        at_least(
            "dialogues compared", asked.scored, MIN_DIALOGUES,
            "too few to distinguish drift from noise: find out why the others have no score, or record a larger set",
        ),
        equal("model versions", asked.versions[1], asked.versions[0], _RENAMED),
        *(within(f"{name}: medians moved by", by, -_MAX_SHIFT, _MAX_SHIFT, _MOVED) for name, by in moved.shift.items()),
        at_least(ORDER, moved.order, _MIN_ORDER, _MOVED)
        if moved.spread >= _LEAST_SPREAD
        else info(ORDER, f"not checked: the grades of then differ by {moved.spread:.2f} only"),
        info("baseline recorded", recorded),
    ]  # fmt: skip
    return GateResult(GATE, tuple(checks))


def check_baseline(run: Run) -> FileState:
    """Reject a baseline that cannot be used with the current judge, before any call is paid.

    Returns:
        `FRESH`, or `MISSING` or `INTERRUPTED` if none was recorded yet.

    Raises:
        RC1Error: says what is wrong with the existing one, and which command records another.
    """
    path, state = JUDGE_BASELINE.path(run), JUDGE_BASELINE.state(run)
    if state is FileState.MISSING and run.workspace.checksum_path(BASELINE_PATH).exists():
        raise RC1Error(f"{path}: was recorded and is missing now; restore it; {another(run)}")
    if state in NOT_OURS:
        raise RC1Error(f"{path}: {NOT_OURS[state]}; {another(run)}")
    if state is FileState.STALE:
        then, today = read_baseline(run)["judge"], judge_identity(run)
        raise RC1Error(
            f"{path}: was recorded with the judge {_in_words(then)}, but the judge is now {_in_words(today)}, so their "
            f"scores cannot be compared; {another(run)}"
        )
    return state


def record_baseline(run: Run) -> Body:
    """Record the fixed set with its first scores, if there is none yet.

    Valid stored scores are used, the rest is requested.

    Returns:
        The baseline, recorded now or earlier.

    Raises:
        RC1Error: as `check_baseline`; when too few dialogues are scored; when scores are newer than the weights, or RC1
            did not write these.
    """
    if check_baseline(run) is FileState.FRESH:
        return read_baseline(run)
    if run.config.judge.provider in LIVE:
        WEIGHTS.check_ours(run, rebuild=False)  # no calibration replaces these, so nothing shows their grades' age
    rows = _chosen(rows_of(run, SHADOW), run.config.judge.baseline.n)
    check_judge(run)
    with open_store(run) as store:
        judge = open_judge(run, store)
        judged = judge.score(rows["messages"].to_list())
        judged.require(MIN_COVERAGE)
        samples = _samples(judged, tuple(read_spec(run).dimensions))
        _check_calibrated_on(run, judge, list(samples), judged.models)
    if len(samples) < MIN_DIALOGUES:
        raise RC1Error(
            f"cannot record a baseline: {len(samples)} dialogues of the shadow set have scores, expected at least "
            f"{MIN_DIALOGUES}; raise shadow.n or judge.baseline.n"
        )
    body: Body = {
        "recorded": now(),
        "judge": judge_identity(run),
        "models": list(judged.models),
        "dimensions": list(read_spec(run).dimensions),
        "dialogues": [
            {"id": row["id"], "messages": row["messages"], "scores": samples[name].tolist()}
            for row in rows.iter_rows(named=True)
            if (name := dialogue_sha256(row["messages"])) in samples
        ],
    }
    with recorded_write(run.workspace, BASELINE_PATH, {"kind": JUDGE_BASELINE.name, "judge": body["judge"]}) as stream:
        stream.write(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")
    return body


def _check_calibrated_on(run: Run, judge: Judge, dialogues: Sequence[str], models: Sequence[str]) -> None:
    """Reject replies that came after the weights in force were written: these would not show that the judge moved."""
    if run.config.judge.provider not in LIVE or WEIGHTS.state(run) is not FileState.FRESH:
        return  # without weights of this judge the calibration comes first
    written = str((read_manifest(run.workspace, run.config.weights) or {})["written"])
    ended = datetime.fromisoformat(written).timestamp() + 1  # it is cut to the second
    keys = [judge.key(name, sample) for name in dialogues for sample in range(judge.config.samples)]
    found = [reply for model in models for reply in judge.store.find(keys, model).values()]
    before = len({reply.ask_key for reply in found if reply.stored < ended})
    if before < MIN_COVERAGE * len(keys):
        raise RC1Error(
            f"cannot record a baseline: {len(keys) - before} of {len(keys)} replies came after "
            f"{run.workspace.path(run.config.weights)} was written ({written}), so the weights rest on other grades; "
            f"run rc1 calibrate --rebuild, then this again"
        )


def drift_verdict(run: Run, where: str | None = None) -> GateResult:
    """Ask the judge about the fixed set again, ignoring stored scores, and compare.

    Args:
        run: supplies judge and baseline.
        where: path of the store for the new scores, below the workspace; default: the one next to the baseline.

    Raises:
        RC1Error: when there is no baseline of this judge, or the judge cannot be asked or stopped early.
    """
    if check_baseline(run) is not FileState.FRESH:
        raise RC1Error(f"{JUDGE_BASELINE.path(run)}: no baseline to compare with; `rc1 preflight` records one")
    body = read_baseline(run)
    dialogues = [dialogue["messages"] for dialogue in body["dialogues"]]
    judged, _ = fresh_scores(run, dialogues, where or ASKED_STORE)
    again = _samples(judged, tuple(body["dimensions"]))
    both = [
        (dialogue["scores"], again[name])
        for dialogue, messages in zip(body["dialogues"], dialogues, strict=True)
        if (name := dialogue_sha256(messages)) in again
    ]
    moved = _moved([(np.array(then, np.float64), today) for then, today in both], body["dimensions"])
    versions = ", ".join(body["models"]), ", ".join(judged.models)
    asked = AskedAgain(len(dialogues), len(both), judged.why_unscored, versions)
    gate = judge_drift_gate(moved, asked, str(body["recorded"]))
    marks = real_checks(run, [*body["models"], *judged.models])
    return GateResult(gate.name, (*gate.checks, *marks))


def _moved(samples: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]], dimensions: Sequence[str]) -> Moved:
    """Return how grades moved, then to now; each array is (samples, dimensions)."""
    if not samples:
        return Moved({}, nan, 0.0)
    both = [tuple(np.column_stack([scores, scores.mean(axis=1)]) for scores in pair) for pair in samples]
    shift = np.mean([np.median(now, axis=0) - np.median(then, axis=0) for then, now in both], axis=0)
    then, now = (np.array([pair[time][:, -1].mean() for pair in both]) for time in (0, 1))
    order = float(np.corrcoef(then, now)[0, 1]) if then.std() and now.std() else nan
    return Moved(dict(zip((*dimensions, OVERALL), shift.tolist(), strict=True)), order, float(then.std()))


ASKED_STORE = "data/judge/baseline/asked.sqlite"
"""A separate store for these scores, which must not replace the scores in use."""


def _chosen(rows: pl.DataFrame, n: int) -> pl.DataFrame:
    """Choose `n` rows, the same for any order of the rows."""
    order = [hashlib.sha256(str(name).encode()).hexdigest() for name in rows["id"]]
    return rows.with_columns(order=pl.Series(order, dtype=pl.String)).sort("order").head(n)


def _samples(judged: Judged, dimensions: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
    """Return the samples' scores of scored dialogues, by dialogue, shape (samples, dimensions)."""
    scored = judged.rows.filter("scored")["dialogue"].unique()
    replies = judged.replies.filter(pl.col("dialogue").is_in(scored.implode())).sort("dialogue", "sample")
    grouped = replies.partition_by("dialogue", as_dict=True)
    return {str(name): part.select(dimensions).to_numpy() for (name,), part in grouped.items()}


def _in_words(judge: Mapping[str, str]) -> str:
    model = f" {judge['model']}" if judge["model"] else ""
    return f"'{judge['provider']}{model}' by '{judge['spec']}' ({judge['spec_sha256'][:8]})"
