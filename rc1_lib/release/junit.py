"""The gates of a run as a file in JUnit's form, which CI servers show: one test case a gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rc1_lib.check_words import failed_lines, gate_sentence
from rc1_lib.evaluation.derived import EVALUATION, TRAINING_REPORT
from rc1_lib.preflight.carried_ticket import why_outdated
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.ticket import TICKET, digest_of
from rc1_lib.records import GateResult, Status
from rc1_lib.release.report import Page, read_report, rounds_of
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import in_form, write_text
from rc1_lib.workspace.file_hashes import sha256_file

JUNIT = "reports/release/junit.xml"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_Outcome = Literal["failure", "error", "skipped"]
_Body = Mapping[str, Any] | None
_OUTCOMES: Mapping[Status, _Outcome] = {
    Status.FAILED: "failure",
    Status.ERROR: "error",
    Status.WAIVED: "skipped",
    Status.NOT_APPLICABLE: "skipped",
    Status.WAITING: "skipped",
}


def write_junit(run: Run) -> Page:
    """Write `reports/release/junit.xml`: a suite a round, one for the evaluation if there is one, one for the ticket.

    A failed gate is a failure with its sentence, one without a verdict an error; a waived or not applicable one, and
    one that waits for another, is skipped with the reason. A round that was not judged, an evaluation that ended early
    or is missing, and a ticket that is missing, revoked or another than the policy's, fail too.

    Raises:
        RC1Error: when a report cannot be read or has another form.
    """
    root = Element("testsuites", name="rc1")
    rounds = {one.name: one for one in rounds_of(run)}
    for name in dict.fromkeys([*(f"round {number}" for number in PASSED), *rounds]):
        suite = SubElement(root, "testsuite", name=name)
        if (found := rounds.get(name)) is None:
            _case(suite, name, "error", f"{name} was not judged; run `rc1 preflight`")
            continue
        suite.set("timestamp", str(found.body.get("time")))
        for gate in found.gates:
            _gate(suite, gate)
        if found.body.get("pass") is not True and not _failed(suite):
            _case(suite, name, "error", f"{name} was not judged whole; run `rc1 preflight`")
    training, ticket = read_report(run, TRAINING_REPORT), read_report(run, TICKET)
    if training is not None and (evaluated := _evaluated(run, training)) is not None:
        _gate(SubElement(root, "testsuite", name="evaluation"), evaluated)
    _case(SubElement(root, "testsuite", name="ticket"), "ticket", *_of_ticket(run, ticket, training))
    for suite in root:
        suite.set("tests", str(len(suite.findall("testcase"))))
        for outcome, total in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(total, str(len(suite.findall(f"testcase/{outcome}"))))
    indent(root)
    path = run.workspace.path(JUNIT)
    write_text(path, tostring(root, "utf-8", xml_declaration=True).decode() + "\n")
    return Page(JUNIT, sha256_file(path), tuple(chain.from_iterable(map(_failed, root))))


def _gate(suite: Element, gate: GateResult) -> None:
    lines = failed_lines({**gate.to_dict(), "offenders": 0}, "")
    _case(suite, gate.name, _OUTCOMES.get(gate.status), gate_sentence(gate, advice=False), "\n".join(lines))


def _case(suite: Element, name: str, outcome: _Outcome | None, sentence: str = "", details: str = "") -> None:
    """Add a test case, which passed if it has no outcome."""
    case = SubElement(suite, "testcase", classname=f"rc1.{suite.get('name')}", name=_clean(name))
    if outcome is not None:
        SubElement(case, outcome, message=_clean(sentence)).text = _clean(details) or None


def _clean(text: str) -> str:
    """Replace characters that no XML file may hold, not even escaped; an error's text may quote any."""
    return _NO_XML.sub("\ufffd", text)


def _failed(suite: Element) -> list[str]:
    faults = ((case, fault) for case in suite for fault in case if fault.tag != "skipped")
    return [f"{suite.get('name')}, {case.get('name')}: {fault.get('message')}" for case, fault in faults]


def _evaluated(run: Run, training: Mapping[str, Any]) -> GateResult | None:
    """Return the gate of the evaluation with which the training ended; None if it was not to be evaluated."""
    if not training.get("evaluation"):
        why = str(training.get("message") or "the training ended without an evaluation")
        return None if training.get("pass") is True else GateResult("evaluation", error=why)
    if (report := read_report(run, where := EVALUATION.where(run))) is None:
        return GateResult("evaluation", error=f"{run.workspace.path(where)}: there is no such file")
    with in_form(EVALUATION.path(run)):
        gate = GateResult.from_report(report["gate"])
    if gate.status is Status.PASSED and training.get("pass") is not True:
        return GateResult("evaluation", error=f"the training failed after it: {training.get('message')}")
    return gate


def _of_ticket(run: Run, ticket: _Body, training: _Body) -> tuple[_Outcome | None, str]:
    """Return whether there is a ticket as it was issued, not revoked, and the one that the policy was trained under.

    `rc1 ticket verify` says whether it is valid.
    """
    if ticket is None:
        return "failure", "there is no ticket"
    with in_form(run.workspace.path(TICKET)):
        if ticket["revoked"]:
            return "failure", f"it was revoked: {ticket['revoked']['reason']}"
        if ticket["ticket_sha256"] != digest_of(dict(ticket)):
            return "failure", "it was changed after it was issued"
        outdated = why_outdated(training, ticket) if training is not None else ""
    return ("failure", outdated) if outdated else (None, "")
