"""Reports whose name holds all that decides them: a round reads its verdict from there, and finds no other's."""

from __future__ import annotations

from collections.abc import Collection

from rc1_lib.artifacts import FileState, read_json
from rc1_lib.checks import equal, info
from rc1_lib.derived import Artifact
from rc1_lib.errors import RC1Error
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.scoring.test_double_checks import double_checks, said_double


def kept_verdict(run: Run, artifact: Artifact, where: str, key: str, expected: Collection[str], of: str) -> GateResult:
    """The verdict in a report, judged again; red where there is none, or somebody else wrote it.

    Args:
        run: whose report.
        artifact: what it is.
        where: its path, relative to the workspace.
        key: what its name holds.
        expected: the checks that it must have.
        of: what it is about, for the check that it is there.

    Raises:
        RC1Error: when it cannot be read, or is the report of something else.
    """
    again = f"run it: {artifact.command}"
    path, state = run.workspace.path(where), artifact.state(run)
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
    return GateResult(found.name, (*found.checks, whole, *marks, info("file", where)))
