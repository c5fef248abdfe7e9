"""Reports whose name holds all that decides them: a round reads its verdict from there, and finds no other's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel

from rc1_lib.checks import equal, info
from rc1_lib.errors import RC1Error
from rc1_lib.pool.derived import TAKES
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import Artifact
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.scoring.identity import double_checks, said_double, scoring_settings
from rc1_lib.workspace.artifacts import FileState, file_state, read_json, sha256_json

REPORT = "file"
"""The line of a verdict that tells which report it was read from."""


def report_key(run: Run, weights: Mapping[str, float], gate: BaseModel, **more: Any) -> str:
    """Names a report by all that decides it, so that a report of something else is never found.

    Args:
        run: whose dialogues, judge, reward and penalty.
        weights: of the reward.
        gate: the gate's thresholds.
        more: what else decides it.
    """
    config = run.config
    decisive = {
        "weights": dict(weights),
        "takes": TAKES.sha256(run),
        "overclar": config.overclar.model_dump(mode="json"),
        "on": config.use_overclar_penalty,
        "scoring": scoring_settings(run) if config.pays_judged_score else None,
        "paid": config.training.reward.model_dump(mode="json", include={"success", "judge"}),
        "code": code_sha256(),
        "reward": config.reward.model_dump(mode="json"),
        "gate": gate.model_dump(mode="json"),
        **more,
    }
    return sha256_json(decisive)[:12]


def report_path(name: str, key: str) -> str:
    """Where such a report lies, relative to the workspace."""
    return f"reports/{name}_{key}.json"


def kept_verdict(run: Run, artifact: Artifact, key: str, expected: Collection[str], of: str) -> GateResult:
    """The verdict in a report, judged again; red where there is none, or somebody else wrote it.

    Args:
        run: whose report.
        artifact: what it is.
        key: what its name holds.
        expected: the checks that it must have.
        of: what it is about, for the check that it is there.

    Raises:
        RC1Error: when it cannot be read, or is the report of something else.
    """
    again = f"run it: {artifact.command}"
    where = report_path(artifact.name, key)
    path, state = run.workspace.path(where), file_state(run.workspace, where, None, artifact.name)
    if state is FileState.MISSING:
        return GateResult(artifact.name, (equal(of, False, True, again),))
    whole = equal("report", state.value, FileState.FRESH.value, f"somebody else wrote {path.name}; {again}")
    try:
        report = read_json(path)
        found = GateResult.from_dict({**report["gate"], "offenders": ()})
    except (ValueError, KeyError, TypeError):
        raise RC1Error(f"{path}: is not the report of {artifact.name}; {again}") from None
    judged = {check.name for check in found.checks if check.op != "info"}
    if found.name != artifact.name or report.get("key") != key or found.error or not judged >= set(expected):
        raise RC1Error(f"{path}: is the report of something else; {again}")
    marks = double_checks(run, said_double(report))
    return GateResult(found.name, (*found.checks, whole, *marks, info(REPORT, where)))
