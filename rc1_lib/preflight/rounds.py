"""The report of a round: every gate's verdict, the files it rests on, and what was loosened or waived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rc1_lib.config.file import departures
from rc1_lib.evidence import Evidence
from rc1_lib.gates.machine import GitState, code_named, read_code
from rc1_lib.preflight.gates import gates_of_round
from rc1_lib.preflight.offenders import write_offenders
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import GateResult, Status, not_applicable_of, waivers_of
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import now, read_json, write_json, write_text

PASSED = {1: "reports/preflight/round1.json", 2: "reports/preflight/round2_pass.json"}
FAILED = {1: "reports/preflight/round1.json", 2: "reports/preflight/round2_fail.json"}
GREEN = (Status.PASSED, Status.WAIVED, Status.NOT_APPLICABLE)
"""What keeps no ticket from being issued; of these only `PASSED` was judged, and reports list the others."""


def round_passed(results: Sequence[GateResult], number: int) -> bool:
    """Whether every gate of the round has passed, was waived by name or is not applicable."""
    found = {result.name: result.status for result in results}
    return all(found.get(spec.name) in GREEN for spec in gates_of_round(number))


def write_round(run: Run, number: int, results: Sequence[GateResult]) -> Path:
    """Write the round's report, the rows at fault and the git state, and return the report's path.

    A failed second round is written under another name, and the pass of an earlier one is removed: a file called
    `round2_pass.json` always means what it says.
    """
    evidence = Evidence(run)
    passed = round_passed(results, number)
    place = run.workspace
    report: dict[str, Any] = {
        "round": f"round{number}",
        "pass": passed,
        "profile": run.config.profile,
        "time": now(),
        **code_named(read_code()),
        "code_sha256": code_sha256(),
        "config_sha256": run.config_sha256,
        "judge": {"provider": run.config.judge.provider, "spec": run.config.judge.spec},
        "files": fingerprints(evidence),
        "waived": waivers_of(results),
        "not_applicable": not_applicable_of(results),
        "thresholds_changed": departures(run.config, published_config()),
        "gates": [_summary(result) for result in results],
    }
    for result in results:
        write_offenders(run, offenders_path(number, result.name), result)
    path = place.path(PASSED[number] if passed else FAILED[number])
    # A red first round also takes the second one's report with it: it spoke of files that are not these.
    outdated = {PASSED[number], FAILED[number]} | ({PASSED[2], FAILED[2]} if number == 1 and not passed else set())
    for stale in outdated - {PASSED[number] if passed else FAILED[number]}:
        # First of all: a kill after this line leaves no report of a pass that is no longer true.
        place.path(stale).unlink(missing_ok=True)
    write_json(path, report)
    write_git_state(run)
    return path


def read_round(run: Run, number: int) -> dict[str, Any] | None:
    """The report of a round, or None when there is none or it cannot be read."""
    try:
        report = read_json(run.workspace.path(PASSED[number]))
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def report_passed(report: Mapping[str, Any], number: int) -> bool:
    """Whether a report's own gates, judged again, make a passed round; its word `pass` alone is not believed."""
    try:
        results = [GateResult.from_dict({**gate, "offenders": ()}) for gate in report["gates"]]
    except (KeyError, TypeError):
        return False
    return report.get("pass") is True and round_passed(results, number)


def fingerprints(evidence: Evidence) -> dict[str, dict[str, str | None]]:
    """Path and SHA-256 of every file of the preflight; the hash is None where the file is missing."""
    return {
        name: {
            "path": evidence.label(name),
            "sha256": evidence.sha256(name) if evidence.path(name).exists() else None,
        }
        for name in evidence.names
    }


def offenders_path(number: int, gate: str) -> str:
    """Where the rows at fault are written, relative to the workspace."""
    return f"reports/preflight/round{number}_{gate}_offenders.jsonl"


def write_git_state(run: Run) -> None:
    """Write `git_commit.txt` and `git_status.txt`, which say which code ran."""
    state = read_code()
    if isinstance(state, GitState):
        named = state.commit or "not a git checkout"
    else:
        named = f"not a git checkout; installed is rc1 {state.version or '?'}, SHA-256 {state.sha256}"
    write_text(run.workspace.path("reports/rc1/git_commit.txt"), f"{named}\n")
    write_text(run.workspace.path("reports/rc1/git_status.txt"), "".join(f"{line}\n" for line in state.changed or ()))


def _summary(result: GateResult) -> dict[str, Any]:
    body = result.to_dict()
    body["offenders"] = len(result.offenders)
    return body
