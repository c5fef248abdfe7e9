"""Commands that run gates as a flow: `preflight`, `round1`, `round2`, `scale-up`; and `ticket verify|show|revoke`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

from rc1_lib.check_words import failed_lines
from rc1_lib.cli import tables
from rc1_lib.cli.endings import (
    FAILED,
    Ending,
    after_preflight,
    again,
    end,
    failure_of,
    judged,
    then,
    to_training,
    warned,
)
from rc1_lib.cli.flows import end_flow, preflight_outline, run_flow_of, stamps, written_since
from rc1_lib.cli.judge_cost import preflight_cost_agreed
from rc1_lib.cli.options import Rebuild, Seed, Verbose
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import REPORTS as STAGE_REPORTS
from rc1_lib.cli.verdicts import show_stages, stages_of
from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.runtime.libraries import lacking_for_training

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
_CANNOT_TRAIN = (
    "no training here (extra train), and this ticket opens none elsewhere, because it names the libraries of this "
    "installation; a preflight there writes the same data again and issues another ticket"
)
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
    run = session.open({"pool.seed": seed})
    from rc1_lib.preflight.preconditions import check_preconditions

    # The flow does so too; here the answer is there before a server has started.
    check_preconditions(run, calibrates=build != "never", ticket=ticket and 2 in rounds)
    agreed = preflight_cost_agreed(session, run, len(rounds), calibrates=build != "never")
    before = stamps(run, *_REPORTS, STAGE_REPORTS)
    session.show(*preflight_outline(run, rounds, ticket=ticket))
    outcome = run_flow_of(
        session, run, "preflight", verbose=verbose, rounds=rounds, build=build, refresh=refresh, ticket=ticket,
        judge_cost_agreed=agreed,
    )  # fmt: skip
    from rc1_lib.preflight.ticket import read_ticket

    written = written_since(run, before, *_REPORTS)
    reports = list(written.values())
    calibrated = stages_of(written_since(run, before, STAGE_REPORTS))
    if any(one["gate"]["status"] != "passed" for one in calibrated):
        show_stages(session, run, calibrated)
    issued = read_ticket(run) if ticket and outcome.exit_code == 0 else None
    seconds = round(time.monotonic() - begun, 1)
    _show_rounds(session, written, issued, outcome.message if outcome.exit_code else "", seconds)
    document = {"calibration": calibrated, "rounds": reports, "ticket": issued, "seconds": seconds}
    passed = outcome.exit_code == 0
    following = after_preflight(session, rounds, passed=passed)
    ending = _ending(session, written, calibrated, issued, outcome.message, passed=passed, following=following)
    return end_flow(session, outcome, document, warned(session, run, ending) if issued else ending)


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
    """Return the ending of the latest round, or of the calibration if that failed before a round."""
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
        if ending.verdict == "fail":
            return ending
        stopped = [failure_of(one["gate"]) for one in calibrated if one["gate"]["status"] in FAILED]
        return Ending("fail", message, stopped, report, following)
    names = " and ".join(one["round"].removeprefix("round") for one in written.values())
    count = len(latest["gates"])
    words = f"round{'s' if len(written) > 1 else ''} {names}, {count} gates"
    return Ending("pass", f"{words}; ticket until {issued['expires']}" if issued else words, (), report, following)


def _show_rounds(
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
        for gate in tables.errors_once(report["gates"]):
            listed = f"reports/preflight/{report['round']}_{gate['name']}_offenders.jsonl"
            session.show(*failed_lines(gate, listed))
    if message:
        session.show(message)
        session.show(*revocation(session))
    if issued:
        from rc1_lib.preflight.ticket import TICKET

        session.show(f"ticket: {session.workspace.path(TICKET)}, expires {issued['expires']}")
        if lacking_for_training():
            session.show(_CANNOT_TRAIN)
    session.show(f"{seconds} s")


def revocation(session: Session) -> list[str]:
    """Say that a failed run revoked the ticket, if there is one."""
    from rc1_lib.preflight.ticket import TICKET, read_ticket

    assert session.run is not None
    try:
        revoked = read_ticket(session.run)["revoked"]
    except RC1Error:
        return []
    return [f"ticket revoked: {session.workspace.path(TICKET)}"] if revoked else []


def scale_up(
    session: Session,
    seed: Seed = None,
    build: Build = "auto",
    rebuild: Rebuild = False,
    verbose: Verbose = False,
) -> int:
    """Grow the pool from size to size (scale_up.sizes), with gates before and after each; stop at the first fail.

    What passed before is not judged again, also after a kill. No ticket is issued or revoked.
    """
    run = session.open({"pool.seed": seed})
    from rc1_lib.scale_up.report import PICTURE, REPORT
    from rc1_lib.scale_up.sizes import steps

    steps(run)  # the flow asks too; here the answer is there before a server has started
    before = stamps(run, REPORT)
    outcome = run_flow_of(session, run, "scale_up", verbose=verbose, build="always" if rebuild else build)
    report = written_since(run, before, REPORT).get(REPORT)
    if report:
        heads = tuple(report["table"][0])
        sizes = tables.table("measures by size", heads, [tuple(row.values()) for row in report["table"]], heads[2:])
        session.show(sizes, *tables.notes(report, REPORT))
        session.show(f"picture: {run.workspace.path(PICTURE)}")
    session.show(outcome.message)
    place = run.workspace.path(REPORT) if report else None
    if outcome.exit_code:
        ending = Ending("fail", outcome.message, report=place, following=again(session, "scale-up"))
    else:
        ending = Ending("pass", outcome.message, report=place, following=then(session, "preflight"))
    return end_flow(
        session, outcome, {"report": REPORT if report else None, "table": report and report["table"]}, ending
    )


def verify_ticket(session: Session, seed: Seed = None) -> int:
    """Check everything that the ticket vouches for: files, code, configuration, judge.

    Give the flags of the preflight that issued it.
    """
    from rc1_lib.preflight.ticket import verify_ticket as verified

    run = session.open({"pool.seed": seed})
    ticket = verified(run)
    _print_ticket(session, ticket)
    words = "ticket valid: every file, the code and the configuration are those that passed both rounds"
    ending = warned(session, run, Ending("pass", words, following=to_training(session)))
    return end(session, ending, {"valid": True, "ticket": ticket})


def show_ticket(session: Session) -> int:
    """Print the ticket, without verifying it."""
    from rc1_lib.preflight.ticket import read_ticket

    ticket = read_ticket(session.open())
    _print_ticket(session, ticket)
    return end(session, Ending("done", "the ticket, not verified", following=then(session, "ticket verify")), ticket)


def revoke_ticket(session: Session, reason: Annotated[str, typer.Option(help="Why; kept in the ticket.")]) -> int:
    """Revoke the ticket: no training starts with it any more, and it keeps the reason."""
    from rc1_lib.preflight.ticket import TICKET, read_ticket
    from rc1_lib.preflight.ticket import revoke_ticket as revoke

    if not reason.strip():
        raise TicketError("--reason is empty; say why the ticket is revoked")
    run = session.open()
    if not revoke(run, reason):
        raise TicketError(f"{run.workspace.path(TICKET)}: there is no ticket to revoke")
    revoked = read_ticket(run)["revoked"]
    words = f"revoked at {revoked['time']}: {revoked['reason']}"
    return end(
        session,
        Ending("done", words, following=then(session, "preflight", when="for another ticket")),
        {"revoked": revoked},
    )


def _print_ticket(session: Session, ticket: dict[str, Any]) -> None:
    revoked = ticket.get("revoked")
    session.show(f"ticket of profile {ticket['profile']}, issued {ticket['issued']}, expires {ticket['expires']}")
    package, judge = ticket.get("package"), ticket["judge"]
    code = f"commit {ticket['commit'] or 'unknown'}"
    if package is not None:
        code = f"package rc1 {package['version']}, SHA-256 {package['sha256'][:16]}"
    session.show(f"{code}, judge {judge['provider']} {judge['spec']}")
    signed = (ticket.get("envelope") or {}).get("signatures") or []
    session.show(
        f"signed by key {signed[0]['keyid'][:16]}" if signed else "not signed: docs/ticket.md says what it proves"
    )
    for word in ("waived", "not_applicable"):
        session.show(*(f"{word.replace('_', ' ')}: {name} ({why})" for name, why in ticket[word].items()))
    session.show(*(f"{(file['sha256'] or 'missing')[:16]}  {file['path']}" for file in ticket["files"].values()))
    if revoked:
        session.show(f"REVOKED at {revoked['time']}: {revoked['reason']}")
