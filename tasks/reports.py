"""The reports of a run: the round's report and its table in the UI, the nightly's report, and the ticket."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from rc1_lib.check_words import check_rows, figure, round_sentence
from rc1_lib.config.file import departures
from rc1_lib.gates.gate_list import round_name, round_title
from rc1_lib.preflight.carried_ticket import carried
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import round_passed, write_round
from rc1_lib.preflight.ticket import check_unchanged, revoke_ticket, verify_ticket, vouched_by
from rc1_lib.records import GateResult
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import now, write_json
from tasks.endings import refusable, retried

NIGHTLY = "reports/preflight/nightly.json"
_TICKET_CARD = "rc1-ticket"
_MAX_BYTES = 300_000
"""Prefect drops the event of an artifact above about 1.5 MB; a step has up to three pictures."""


@retried(name="round report", task_run_name="round {number} report")
def report_round(run: Run, number: int, results: Sequence[GateResult], *, write: bool = True) -> dict[str, Any] | None:
    """Show the round's table in the UI and write its report.

    Args:
        results: the verdict of every gate of the round.
        write: False for a re-check, which must not change the reports that the ticket vouches for.

    Returns:
        The report; None if none was written.
    """
    report = write_round(run, number, results) if write else None
    verdict = "passed" if round_passed(results, number) else "FAILED"
    create_table_artifact(
        key=f"rc1-{round_name(number)}-gates",
        table=table(results, departures(run.config, published_config())),
        description=f"{round_title(number).capitalize()} {verdict} (profile {run.config.profile}): "
        f"{round_sentence(results)}",
    )
    return report


def table(results: Sequence[GateResult], changed: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, str]]:
    """Return verdicts as rows of text, those that need attention first and merely reported figures last.

    Args:
        changed: settings that differ from the published ones, from `departures`.
    """
    rows = [*check_rows(results), *map(_changed_row, changed)]
    return sorted(rows, key=lambda row: _URGENCY.index(row["outcome"]))


_URGENCY = ("ERROR", "FAILED", "not judged", "waived", "not applicable", "passed", "info", "changed")


def _changed_row(one: Mapping[str, Any]) -> dict[str, str]:
    published = f"published: {figure(one['published'])}"
    return {
        "gate": "", "outcome": "changed", "check": one["key"], "value": figure(one["value"]), "wanted": published,
        "certainty": "", "advice": "",
    }  # fmt: skip


@task(name="issue ticket", persist_result=False)
@refusable
def issue(run: Run, judged: Mapping[int, Mapping[str, Any]]) -> dict[str, str]:
    """Issue the ticket; it is an error if a round has not passed for exactly these files.

    Args:
        judged: round -> its report, of the rounds of this run.
    """
    ticket = issue_ticket(run, judged)
    waived = "".join(f"\n- waived: **{name}**, {reason}" for name, reason in ticket["waived"].items())
    waived += "".join(f"\n- not applicable: **{name}**, {why}" for name, why in ticket["not_applicable"].items())
    pinned = "\n".join(f"- {name}: `{one['path']}` {one['sha256'][:12]}" for name, one in ticket["files"].items())
    create_markdown_artifact(
        key=_TICKET_CARD,
        markdown=f"# Ticket issued\n\n- profile: {ticket['profile']}\n- issued: {ticket['issued']}\n"
        f"- expires: {ticket['expires']}\n- commit: {ticket['commit'] or 'of no checkout'}\n"
        f"- digest: `{ticket['ticket_sha256']}`{waived}\n\n## Files\n\n{pinned}\n",
        description=f"Ticket of profile {ticket['profile']} issued, expires {ticket['expires']}",
    )
    return {key: ticket[key] for key in ("profile", "issued", "expires", "ticket_sha256")}


@retried(name="verify ticket")
@refusable
def verify(run: Run) -> dict[str, Any]:
    """Verify everything that the ticket pins; the error names everything that differs.

    Returns:
        The ticket's main facts; under `vouched` the fingerprint of everything that it pins, and under `carried` what
        the report of a training records of it.
    """
    ticket = verify_ticket(run)
    head = {key: ticket[key] for key in ("profile", "issued", "expires", "ticket_sha256")}
    return {**head, "vouched": vouched_by(ticket), "carried": carried(ticket).model_dump()}


@retried(name="verify ticket again", task_run_name="ticket, before {what}")
@refusable
def verify_again(run: Run, what: str) -> str:
    """Verify everything that the ticket pins again; it is an error if anything changed since the run began.

    Args:
        what: the next action, for people.
    """
    check_unchanged(run)
    return what


@retried(name="revoke ticket")
def revoke(run: Run, reason: str) -> bool:
    """Revoke the ticket, if there is one, show that in the UI, and return whether there was one."""
    there = revoke_ticket(run, reason)
    if there:
        create_markdown_artifact(
            key=_TICKET_CARD, markdown=f"# Ticket revoked\n\n{reason}\n", description=f"Ticket revoked: {reason}"
        )
    return there


@task(name="nightly report", persist_result=False)
def report_nightly(run: Run, verdict: str, passed: bool, rounds: Mapping[str, list[GateResult]]) -> str:
    """Write the result of the latest re-check; the rounds' reports, which the ticket pins, do not change."""
    body: dict[str, Any] = {
        "time": now(),
        "pass": passed,
        "verdict": verdict,
        "rounds": {
            name: [{**result.to_dict(), "offenders": len(result.offenders)} for result in results]
            for name, results in rounds.items()
        },
    }
    write_json(run.workspace.path(NIGHTLY), body)
    return NIGHTLY


def picture(run: Run, file: str, title: str) -> str:
    """Return a PNG as Markdown for Prefect, whose server cannot read the workspace; its path if it is too large."""
    content = run.workspace.path(file).read_bytes()
    if len(content) > _MAX_BYTES:
        return f"`{file}` ({len(content):,} bytes, too large to be shown here)"
    return f"![{title}](data:image/png;base64,{base64.b64encode(content).decode()})\n\n`{file}`"
