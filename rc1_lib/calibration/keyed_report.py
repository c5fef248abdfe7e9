"""Reports named by a hash of all their inputs, so that a round finds only its own verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from rc1_lib.calibration.judged_rows import real_checks, reported_models
from rc1_lib.checks import equal, info
from rc1_lib.errors import RC1Error
from rc1_lib.judge.prompt import scoring_settings
from rc1_lib.pool.derived import TAKES
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import Artifact
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState, file_state, read_json, sha256_json

REPORT = "file"
"""The line of a verdict that names its report."""


def report_key(run: Run, weights: Mapping[str, float], gate: BaseModel, **more: Any) -> str:
    """Compute the hash that names a report, so that a report of something else is never found.

    Args:
        run: supplies dialogues, judge, reward and penalty.
        gate: the gate's thresholds.
        more: further inputs.
    """
    config = run.config
    decisive = {
        "weights": dict(weights),
        "takes": TAKES.sha256(run),
        "overclar": config.overclar.model_dump(mode="json"),
        "on": config.use_overclar_penalty,
        "scoring": scoring_settings(run) if config.pays_judged_score else None,
        "paid": config.training.reward.model_dump(mode="json", include={"success", "judge"}),
        "code": code_sha256("data"),
        "reward": config.reward.model_dump(mode="json"),
        "gate": gate.model_dump(mode="json"),
        "resamples": config.gates.shared.resamples,
        **more,
    }
    return sha256_json(decisive)[:12]


def report_path(name: str, key: str) -> str:
    """Return the path of such a report, relative to the workspace."""
    return f"reports/{name}_{key}.json"


def kept_verdict(run: Run, artifact: Artifact, key: str, subject: str) -> GateResult:
    """Read the verdict in a report; it fails if there is no report, or RC1 did not write it.

    Args:
        key: the hash in its name.
        subject: names the report in the check that it exists.

    Raises:
        RC1Error: when it cannot be read.
    """
    again = f"run it: {artifact.command}"
    where = report_path(artifact.name, key)
    path, state = run.workspace.path(where), file_state(run.workspace, where, None, artifact.name)
    if state is FileState.MISSING:
        return GateResult(artifact.name, (equal(subject, False, True, again),))
    whole = equal("report", state.value, FileState.FRESH.value, f"RC1 did not write {path.name}; {again}")
    try:
        report = read_json(path)
        found = GateResult.from_report(report["gate"])
    except (ValueError, KeyError, TypeError):
        raise RC1Error(f"{path}: is not the report of {artifact.name}; {again}") from None
    marks = real_checks(run, reported_models(report)) if run.config.pays_judged_score else ()
    return replace(found, checks=(*found.checks, whole, *marks, info(REPORT, where)))
