"""Commands that run gates as a flow: `preflight`, `round1`, `round2`, `scale-up`; and `ticket verify|revoke`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rc1_lib.check_words import failed_lines, gate_sentence
from rc1_lib.cli import tables
from rc1_lib.cli.endings import (
    FAILED,
    Ending,
    again,
    end,
    failure_of,
    judged,
    warned,
)
from rc1_lib.cli.flows import end_flow, preflight_outline, run_flow_of, stamps, written_since
from rc1_lib.cli.options import Rebuild, Seed, Verbose
from rc1_lib.cli.plan import preflight_cost_agreed
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import REPORTS as STAGE_REPORTS
from rc1_lib.cli.verdicts import show_stages, stages_of
from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.records import PASSING
from rc1_lib.runtime.libraries import lacking_for_training

if TYPE_CHECKING:
    from rc1_lib.run import Run

Build = Annotated[
    Literal["auto", "always", "never"],
    typer.Option(help="Build what is missing or stale (auto), everything (always), or nothing (never)."),
]
Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="Evaluate every gate in both rounds, even if it passed round 1 on these files."),
]
_CANNOT_TRAIN = (
    "this installation cannot train (extra train), and its ticket is not valid on another one, because it lists this "
    "one's libraries; a preflight there writes the same data again and issues another ticket"
)
_REPORTS = ("reports/preflight/round1.json", "reports/preflight/round2_pass.json", "reports/preflight/round2_fail.json")


def _rounds_command(rounds: list[int], what: str) -> Callable[..., int]:
    """Return the command that judges these rounds; the second one issues the ticket."""

    def judge_rounds(
        session: Session,
        seed: Seed = None,
        build: Build = "auto",
        rebuild: Rebuild = False,
        refresh: Refresh = False,
        verbose: Verbose = False,
    ) -> int:
        begun = time.monotonic()
        run = session.open({"pool.seed": seed})
        from rc1_lib.preflight.preconditions import check_preconditions
        from rc1_lib.preflight.ticket import TICKET, read_ticket

        build, ticket = "always" if rebuild else build, 2 in rounds
        # The flow checks this too; here the answer comes before a server has started.
        check_preconditions(run, calibrates=build != "never", ticket=ticket)
        session.show(*_known_to_fail(run, rounds[0]))
        agreed = preflight_cost_agreed(session, run, rounds, calibrates=build != "never")
        before = stamps(run, *_REPORTS, STAGE_REPORTS)
        session.show(*preflight_outline(run, rounds, ticket=ticket))
        outcome = run_flow_of(
            session, run, "preflight", verbose=verbose, rounds=rounds, build=build, refresh=refresh, ticket=ticket,
            judge_cost_agreed=agreed,
        )  # fmt: skip
        passed = outcome.exit_code == 0
        written = written_since(run, before, *_REPORTS)
        calibrated = stages_of(written_since(run, before, STAGE_REPORTS))
        if any(one["gate"]["status"] not in PASSING for one in calibrated):
            show_stages(session, run, calibrated)
        show_rounds(session, written)
        issued = read_ticket(run) if ticket and passed else None
        if not passed:
            session.show(outcome.message, *revocation(run))
        if issued:
            session.show(f"ticket: {run.workspace.path(TICKET)}, expires {issued['expires']}")
            session.show(*[_CANNOT_TRAIN] * bool(lacking_for_training()))
        seconds = round(time.monotonic() - begun, 1)
        session.show(f"{seconds} s")
        ending = _ending(run, written, calibrated, issued, "" if passed else outcome.message)
        ending = ending or Ending("pass" if passed else "fail", outcome.message)
        if not passed:
            command = "preflight" if len(rounds) > 1 else f"round{rounds[0]}"
            ending = replace(ending, following=again(session, command))
        document = {"calibration": calibrated, "rounds": list(written.values()), "ticket": issued, "seconds": seconds}
        return end_flow(session, outcome, document, warned(session, run, ending) if issued else ending)

    judge_rounds.__doc__ = what
    return judge_rounds


preflight = _rounds_command(
    [1, 2], "Check data, judge and reward in two rounds of gates; if both pass, issue the ticket that training needs."
)
round1 = _rounds_command([1], "Build what is missing and run every gate once, the first round; it issues no ticket.")
round2 = _rounds_command([2], "Run the gates again and, if the first round passed on the same files, issue the ticket.")


def _known_to_fail(run: Run, number: int) -> list[str]:
    """Return which gates already fail on configuration, disk and code, before anybody waits or a judge is paid."""
    from rc1_lib.evidence import Evidence
    from rc1_lib.gates.gate_list import evaluate, gates_of_round, round_title

    evidence = Evidence(run)
    names = [spec.name for spec in gates_of_round(number) if set(spec.reads) <= {"config"}]
    failed = [found for name in names if (found := evaluate(name, evidence, number)).status not in PASSING]
    lines = [f"{round_title(number)} will fail: {one.name}: {gate_sentence(one)}" for one in failed]
    return [*lines, "continuing, so that the other gates report too; press Ctrl-C to fix this first"] if lines else []


def _ending(
    run: Run,
    written: Mapping[str, dict[str, Any]],
    calibrated: Sequence[dict[str, Any]],
    issued: dict[str, Any] | None,
    failed: str,
) -> Ending | None:
    """Return the ending of the latest round, or of a calibration that failed before it; None if neither was judged."""
    from rc1_lib.calibration.stages import REPORT as STAGES

    if not written:
        ending = judged("calibration", [one["gate"] for one in calibrated], run.workspace.path(STAGES))
        return ending if failed and ending.verdict == "fail" else None
    file, latest = list(written.items())[-1]
    report = run.workspace.path(file)
    if failed:
        ending = judged(latest["round"].replace("round", "round "), latest["gates"], report)
        stopped = [failure_of(one["gate"]) for one in calibrated if one["gate"]["status"] in FAILED]
        return ending if ending.verdict == "fail" else Ending("fail", failed, stopped, report)
    names = " and ".join(one["round"].removeprefix("round") for one in written.values())
    words = f"round{'s' if len(written) > 1 else ''} {names}, {len(latest['gates'])} gates"
    return Ending("pass", f"{words}; ticket until {issued['expires']}" if issued else words, report=report)


def show_rounds(session: Session, written: Mapping[str, dict[str, Any]]) -> None:
    """Print the latest round as a table, and an earlier one, which nearly always shows the same, as one line."""
    for at, (file, report) in enumerate(written.items(), start=1):
        title = f"round {report['round'].removeprefix('round')}: {'passed' if report['pass'] else 'failed'}"
        if at < len(written):
            count = len(report["gates"])
            session.show(f"{title}, {count} gate{'s' if count > 1 else ''}: {session.workspace.path(file)}")
            continue
        session.show(tables.gates_table(title, report["gates"]), *tables.undecided_lines(report["gates"]))
        session.show(*tables.notes(report, file))
    for report in written.values():  # last, where they are seen
        for gate in tables.errors_once(report["gates"]):
            listed = f"reports/preflight/{report['round']}_{gate['name']}_offenders.jsonl"
            session.show(*failed_lines(gate, listed))


def revocation(run: Run) -> list[str]:
    """Return a line that says that a failed run revoked the ticket, if it did."""
    from rc1_lib.preflight.ticket import TICKET, read_ticket

    try:
        revoked = read_ticket(run)["revoked"]
    except RC1Error:
        return []
    return [f"ticket revoked: {run.workspace.path(TICKET)}"] if revoked else []


def scale_up(
    session: Session,
    seed: Seed = None,
    build: Build = "auto",
    rebuild: Rebuild = False,
    verbose: Verbose = False,
) -> int:
    """Grow the pool from size to size (scale_up.sizes), with gates before and after each; stop at the first failure.

    It needs a valid ticket and a nightly of the last day that passed. A size that passed is not judged again, even
    after a kill. No ticket is issued or revoked.
    """
    run = session.open({"pool.seed": seed}, remembered=True)
    from rc1_lib.scale_up.conditions import check_may_grow
    from rc1_lib.scale_up.report import PICTURE, REPORT
    from rc1_lib.scale_up.sizes import steps

    steps(run)  # the flow checks these too; here the answer comes before a server has started
    check_may_grow(run)
    before = stamps(run, REPORT)
    outcome = run_flow_of(session, run, "scale_up", verbose=verbose, build="always" if rebuild else build)
    report = written_since(run, before, REPORT).get(REPORT)
    if report and report["table"]:
        heads = tuple(report["table"][0])
        sizes = tables.table("measures by size", heads, [tuple(row.values()) for row in report["table"]], heads[2:])
        session.show(sizes, *tables.notes(report, REPORT))
        session.show(f"picture: {run.workspace.path(PICTURE)}")
    session.show(outcome.message)
    failed = bool(outcome.exit_code)
    following = again(session, "scale-up") if failed else ""
    place = run.workspace.path(REPORT) if report else None
    ending = Ending("fail" if failed else "pass", outcome.message, report=place, following=following)
    document = {"report": REPORT if report else None, "table": report and report["table"]}
    return end_flow(session, outcome, document, ending)


def verify_ticket(session: Session, seed: Seed = None) -> int:
    """Check everything that the ticket pins: files, code, configuration, judge.

    The settings are those that the workspace has recorded, with this command's flags on top.
    """
    from rc1_lib.preflight.ticket import other_code
    from rc1_lib.preflight.ticket import verify_ticket as verified

    run = session.open({"pool.seed": seed}, remembered=True)
    ticket = verified(run)
    _print_ticket(session, ticket)
    session.show(*filter(None, [other_code(ticket)]))
    words = "ticket valid: every file, the code and the configuration are those that passed both rounds"
    return end(session, Ending("pass", words), {"valid": True, "ticket": ticket})


def revoke_ticket(session: Session, reason: Annotated[str, typer.Option(help="Why; recorded in the ticket.")]) -> int:
    """Revoke the ticket, so that no training starts with it; the ticket records the reason."""
    from rc1_lib.config.file import load_config
    from rc1_lib.preflight.ticket import TICKET, read_ticket
    from rc1_lib.preflight.ticket import revoke_ticket as revoke
    from rc1_lib.run import PUBLISHED, Run
    from rc1_lib.workspace.artifacts import PROJECT_ROOT

    if not reason.strip():
        raise TicketError("--reason is empty; say why the ticket is revoked")
    # No setting of the user's is read: none of them should be able to keep a ticket valid.
    published = PROJECT_ROOT / PUBLISHED
    run = Run(session.workspace, load_config(published), published, ())
    if not run.workspace.path(TICKET).exists():
        raise TicketError(f"{run.workspace.path(TICKET)}: there is no ticket to revoke")
    if revoke(run, reason):
        revoked = read_ticket(run)["revoked"]
        words = f"revoked at {revoked['time']}: {revoked['reason']}"
    else:
        revoked = {"reason": reason}
        words = f"{run.workspace.path(TICKET)} cannot be read; every ticket issued here until now is revoked: {reason}"
    return end(session, Ending("done", words), {"revoked": revoked})


def _print_ticket(session: Session, ticket: dict[str, Any]) -> None:
    package, judge = ticket.get("package"), ticket["judge"]
    code = f"commit {ticket['commit'] or 'unknown'}"
    if package is not None:
        code = f"package rc1 {package['version']}, SHA-256 {package['sha256'][:16]}"
    signed = (ticket.get("envelope") or {}).get("signatures") or []
    session.show(
        f"ticket of profile {ticket['profile']}, issued {ticket['issued']}, expires {ticket['expires']}",
        f"{code}, judge {judge['provider']} {judge['spec']}",
        f"signed by key {signed[0]['keyid'][:16]}" if signed else "not signed: docs/ticket.md says what it proves",
    )
    session.show(*tables.set_aside(ticket))
    session.show(*(f"{(file['sha256'] or 'missing')[:16]}  {file['path']}" for file in ticket["files"].values()))
