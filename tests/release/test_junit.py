"""`rc1 report --format junit`: every gate is a test case, and a preflight that failed or ended early is never green."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rc1_lib.cli import main
from rc1_lib.evaluation.derived import TRAINING_REPORT
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import TICKET, revoke_ticket
from rc1_lib.records import GateResult, Status
from rc1_lib.release.junit import JUNIT
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import write_json
from tests.conftest import Verdicts, copied_pool

OUTCOMES = {
    Status.PASSED: None, Status.FAILED: "failure", Status.ERROR: "error", Status.WAIVED: "skipped",
    Status.NOT_APPLICABLE: "skipped", Status.WAITING: "skipped",
}  # fmt: skip
Suites = dict[str, ElementTree.Element]


@pytest.fixture
def judged(built: Run, tmp_path: Path) -> Run:
    return open_run(profile="local", workspace=copied_pool(built, tmp_path / "workspace"), overrides=built.overrides)


def suites_of(run: Run) -> Suites:
    run.write_effective_config()
    with pytest.raises(SystemExit) as ended:
        main(["report", "--format", "junit", "--workspace", str(run.workspace.root)])
    assert ended.value.code == 0
    return {suite.get("name", ""): suite for suite in ElementTree.parse(run.workspace.path(JUNIT)).getroot()}


def outcomes(suite: ElementTree.Element) -> dict[str, str | None]:
    cases = suite.findall("testcase")
    found = {case.get("name", ""): case[0].tag if len(case) else None for case in cases}
    tags = list(found.values())
    counts = {"tests": len(cases)} | {f"{tag}s": tags.count(tag) for tag in ("failure", "error")}
    assert counts | {"skipped": tags.count("skipped")} == {
        name: int(suite.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")
    }
    return found


def message(suite: ElementTree.Element, gate: str) -> str:
    (outcome,) = suite.findall(f"testcase[@name='{gate}']/*")
    return str(outcome.get("message"))


def test_passed_rounds_are_green_with_waived_gates_skipped(judged: Run, verdicts: Verdicts) -> None:
    for number, found in verdicts.items():
        write_round(judged, number, found)
    issue_ticket(judged)
    suites = suites_of(judged)
    for number, found in verdicts.items():
        assert outcomes(suites[f"round {number}"]) == {gate.name: OUTCOMES[gate.status] for gate in found}
    assert message(suites["round 1"], "judge_agreement") == (
        f"waived: {judged.config.gates.waivers['judge_agreement']}"
    )
    assert outcomes(suites["ticket"]) == {"ticket": None}
    carried = {"issued": "2026-11-28", "ticket_sha256": "0" * 64, "pins": {"balanced": "0" * 64}}
    write_json(judged.workspace.path(TRAINING_REPORT), {"ticket": carried})
    assert "trained under the ticket of 2026-11-28" in message(suites_of(judged)["ticket"], "ticket")
    ticket = judged.workspace.path(TICKET)
    whole = ticket.read_text()
    ticket.write_text(whole.replace('"expires": "20', '"expires": "21'))
    assert message(suites_of(judged)["ticket"], "ticket")
    write_json(ticket, {**json.loads(whole), "ticket_sha256": None})  # as revoking leaves it, without the note
    assert "changed" in message(suites_of(judged)["ticket"], "ticket")
    ticket.write_text(whole)
    revoke_ticket(judged, "the pool leaks")
    assert "the pool leaks" in message(suites_of(judged)["ticket"], "ticket")


@pytest.mark.parametrize(
    "ending",
    [
        {"pass": False, "message": "ppo_eval could not be judged", "evaluation": None},
        {"pass": True, "evaluation": "reports/ppo_eval_gone.json"},
    ],
)
def test_training_without_the_evaluation_that_it_was_to_have_is_red(judged: Run, ending: dict[str, object]) -> None:
    write_json(judged.workspace.path(TRAINING_REPORT), ending)
    assert outcomes(suites_of(judged)["evaluation"]) == {"evaluation": "error"}
    write_json(judged.workspace.path(TRAINING_REPORT), {"pass": True, "evaluation": None})
    assert "evaluation" not in suites_of(judged), "trained with --no-evaluate"


def test_failed_preflight_is_red_with_its_sentences(judged: Run, verdicts: Verdicts) -> None:
    changed = {
        "mix": lambda gate: replace(
            gate, checks=(replace(gate.checks[0], op="==", value=0.41, threshold=0.6, passed=False),)
        ),
        "length": lambda gate: GateResult("length", error="row \x1b[31m\x00 <a> has no text"),
        "judge_probe": lambda gate: GateResult("judge_probe", not_applicable="nothing is judged"),
        "weights": lambda gate: GateResult("weights", waits_for="calibration"),
    }
    found = [changed.get(gate.name, lambda gate: gate)(gate) for gate in verdicts[1]]
    write_round(judged, 1, found)
    suites = suites_of(judged)
    assert outcomes(suites["round 1"]) == {gate.name: OUTCOMES[gate.status] for gate in found}
    assert "is 0.41, wanted == 0.6" in message(suites["round 1"], "mix")
    assert "\ufffd[31m\ufffd <a> has no text" in message(suites["round 1"], "length")
    assert message(suites["round 1"], "judge_probe") == "not applicable: nothing is judged"
    assert outcomes(suites["round 2"]) == {"round 2": "error"}
    assert outcomes(suites["ticket"]) == {"ticket": "failure"}
