"""`preflight`, `round1` and `round2`: run the flow, then print the rounds and the ticket."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rc1_lib.cli import tables
from rc1_lib.cli.ending import Ending, judged
from rc1_lib.cli.flow_run import run_flow_of, tell_end
from rc1_lib.cli.following import after_preflight
from rc1_lib.cli.fresh_reports import stamps, written_since
from rc1_lib.cli.options import Rebuild, Seed, overrides
from rc1_lib.cli.outline import preflight_outline
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import REPORTS as STAGE_REPORTS
from rc1_lib.cli.verdicts import show_stages, stages_of
from rc1_lib.errors import RC1Error

if TYPE_CHECKING:
    from rc1_lib.run import Run

Build = Annotated[
    Literal["auto", "always", "never"],
    typer.Option(
        help="Build what is missing or stale (auto), everything (always), or only judge what is there (never)."
    ),
]
Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="Judge every gate in both rounds, also those that passed round 1 on these files."),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the flow's own log.")]
_REPORTS = ("reports/preflight/round1.json", "reports/preflight/round2_pass.json", "reports/preflight/round2_fail.json")


def preflight(
    session: Session,
    seed: Seed = None,
    build: Build = "auto",
    rebuild: Rebuild = False,
    refresh: Refresh = False,
    verbose: Verbose = False,
) -> int:
    """Check data, judge and reward in two rounds of gates; if both pass, issue the ticket that training needs."""
    return _run(session, [1, 2], True, seed, "always" if rebuild else build, refresh, verbose)


def round1(
    session: Session,
    seed: Seed = None,
    build: Build = "auto",
    rebuild: Rebuild = False,
    refresh: Refresh = False,
    verbose: Verbose = False,
) -> int:
    """Build what is missing and run every gate once: the first round, which issues no ticket."""
    return _run(session, [1], False, seed, "always" if rebuild else build, refresh, verbose)


def round2(
    session: Session,
    seed: Seed = None,
    build: Build = "auto",
    rebuild: Rebuild = False,
    refresh: Refresh = False,
    verbose: Verbose = False,
) -> int:
    """Run the gates again and, if the first round passed on the same files, issue the ticket."""
    return _run(session, [2], True, seed, "always" if rebuild else build, refresh, verbose)


def _run(
    session: Session,
    rounds: list[int],
    ticket: bool,
    seed: int | None,
    build: Build,
    refresh: bool,
    verbose: bool,
) -> int:
    begun = time.monotonic()
    run = session.open(overrides({"pool.seed": seed}))
    if build != "never":
        from rc1_lib.calibration.performable import check_performable

        check_performable(run)  # the flow does so too; here the answer is there before a server has started
    if ticket and 2 in rounds:
        from rc1_lib.preflight.issuable import check_issuable

        check_issuable(run)
    before = stamps(run, *_REPORTS, STAGE_REPORTS)
    session.show(*preflight_outline(run, rounds, ticket=ticket))
    outcome = run_flow_of(
        session, run, "preflight", verbose=verbose, rounds=rounds, build=build, refresh=refresh, ticket=ticket
    )
    written = written_since(run, before, *_REPORTS)
    reports = list(written.values())
    calibrated = stages_of(written_since(run, before, STAGE_REPORTS))
    if any(one["gate"]["status"] != "passed" for one in calibrated):
        show_stages(session, run, calibrated)
    issued = _ticket(run) if ticket and outcome.exit_code == 0 else None
    seconds = round(time.monotonic() - begun, 1)
    _print(session, written, issued, outcome.message if outcome.exit_code else "", seconds)
    document = {"calibration": calibrated, "rounds": reports, "ticket": issued, "seconds": seconds}
    passed = outcome.exit_code == 0
    following = after_preflight(session, rounds, passed=passed)
    ending = _ending(session, written, calibrated, issued, outcome.message, passed=passed, following=following)
    return tell_end(session, outcome, document, ending)


def _ending(
    session: Session,
    written: Mapping[str, dict[str, Any]],
    calibrated: Sequence[dict[str, Any]],
    issued: dict[str, Any] | None,
    message: str,
    *,
    passed: bool,
    following: str,
) -> Ending:
    """The last lines: of the latest round, or of the calibration where that failed before one."""
    from rc1_lib.calibration.stages import REPORT as STAGES

    if not written:
        ending = judged("calibration", [one["gate"] for one in calibrated], session.workspace.path(STAGES))
        if passed or ending.verdict != "fail":
            return Ending("pass" if passed else "fail", message, following=following)
        return replace(ending, following=following)
    file, latest = list(written.items())[-1]
    report = session.workspace.path(file)
    if not passed:
        ending = judged(latest["round"].replace("round", "round "), latest["gates"], report, after_fail=following)
        return ending if ending.verdict == "fail" else Ending("fail", message, report=report, following=following)
    names = " and ".join(one["round"].removeprefix("round") for one in written.values())
    count = len(latest["gates"])
    words = f"round{'s' if len(written) > 1 else ''} {names}, {count} gates"
    return Ending("pass", f"{words}; ticket until {issued['expires']}" if issued else words, (), report, following)


def _print(
    session: Session,
    written: Mapping[str, dict[str, Any]],
    issued: dict[str, Any] | None,
    message: str,
    seconds: float,
) -> None:
    for report in written.values():
        number = report["round"].removeprefix("round")
        session.show(tables.gates_table(f"round {number}: {'passed' if report['pass'] else 'failed'}", report["gates"]))
        session.show(*tables.undecided_lines(report["gates"]))
    if written:
        file, latest = list(written.items())[-1]
        session.show(*tables.notes(latest, file))
    for report in written.values():  # last, where they are seen
        for gate in report["gates"]:
            listed = f"reports/preflight/{report['round']}_{gate['name']}_offenders.jsonl"
            session.show(*tables.red_lines(gate, listed))
    if message:
        session.show(message)
        session.show(*revocation(session))
    if issued:
        from rc1_lib.preflight.ticket import TICKET

        session.show(f"ticket: {session.workspace.path(TICKET)}, expires {issued['expires']}")
    session.show(f"{seconds} s")


def revocation(session: Session) -> list[str]:
    """What a failed run meant for the ticket, when there is one."""
    from rc1_lib.preflight.ticket import TICKET, read_ticket

    assert session.run is not None
    try:
        revoked = read_ticket(session.run)["revoked"]
    except RC1Error:
        return []
    return [f"ticket revoked: {session.workspace.path(TICKET)}"] if revoked else []


def _ticket(run: Run) -> dict[str, Any]:
    from rc1_lib.preflight.ticket import read_ticket

    return read_ticket(run)
