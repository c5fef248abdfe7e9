"""Reward weights: present, not negative, normalised, not dominated by one, and from a calibration that passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.judged_rows import dimensions, real_checks, reported_models
from rc1_lib.calibration.weights_file import named_report, read_content
from rc1_lib.checks import equal
from rc1_lib.config.thresholds import WeightsGate
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.terms import shape_checks
from rc1_lib.workspace.artifacts import FileState

_AGAIN = "calibrate again: rc1 weight-calib --rebuild"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the weights claim to come from, and what that really contains.

    Attributes:
        report: the calibration report that the file names, parsed; None if it does not exist.
        sha256: its current fingerprint; None if it does not exist.
        judge: the current judge (`judge_identity`).
        state: the file's state (`FileState`): whether it or its inputs changed since a calibration wrote it.
    """

    report: Mapping[str, Any] | None
    sha256: str | None
    judge: Mapping[str, str]
    old_weights: Mapping[str, float]
    state: str


def weights_gate(content: Any, thresholds: WeightsGate, dimensions: Sequence[str], origin: Origin) -> GateResult:
    """Check the parsed content of `weights.json`: `{"weights": {dimension: number}, "report": {path, sha256}, ...}`.

    Args:
        content: the parsed file, or None if it does not exist.
        thresholds: the maximum weight.
        dimensions: the names of the dimensions that can have a weight.
        origin: the report that the weights come from, and what it must agree with.
    """
    return GateResult("weights", (*shape_checks(content, thresholds, dimensions), *_origin_checks(content, origin)))


def _origin_checks(content: Any, origin: Origin) -> tuple[Check, ...]:
    """Check that these are exactly the weights that a passed calibration of the current judge fitted."""
    file = content if isinstance(content, Mapping) else {}
    said = file.get("report")
    named: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    report = origin.report or {}
    same_bytes = origin.sha256 is not None and named.get("sha256") == origin.sha256
    return (
        equal("calibrated", origin.report is not None, True, f"no calibration report supports them; {_AGAIN}"),
        equal("the report is the one named", same_bytes, True, f"the report has changed since; {_AGAIN}"),
        equal(
            "weights are those of the report", bool(report) and file.get("weights") == report.get("weights"), True,
            f"somebody edited the weights by hand; {_AGAIN}",
        ),
        equal("the calibration passed", report.get("pass") is True, True, f"its gate failed; {_AGAIN}"),
        equal(
            "calibrated for this judge", bool(report) and report.get("judge") == dict(origin.judge), True,
            f"provider, model or instructions have changed; {_AGAIN}",
        ),
        equal(
            "old weights are those of the report",
            bool(report) and report.get("old_weights") == dict(origin.old_weights), True,
            f"reward.old_weights has changed; {_AGAIN}",
        ),
        equal(
            "file", origin.state, FileState.FRESH.value,
            f"altered: something other than RC1 wrote it; stale: pool, judge or settings have changed; {_AGAIN}",
        ),
    )  # fmt: skip


def _judge(evidence: Evidence, _: Round) -> GateResult:
    run = evidence.run
    content = read_content(run)
    report, sha256 = named_report(run, content)
    origin = Origin(report, sha256, judge_identity(run), run.config.reward.old_weights, WEIGHTS.state(run).value)
    result = weights_gate(content, run.config.gates.weights, dimensions(run), origin)
    marks = real_checks(run, reported_models(report)) if report else ()
    return replace(result, checks=(*result.checks, *marks))


SPEC = GateSpec(
    "weights", "are the reward weights sound", ("weights", "judge_spec"), _judge, reads_world=True, on_score=True
)
