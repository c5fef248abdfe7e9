"""`ticket verify`, `ticket show` and `ticket revoke`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.following import then
from rc1_lib.cli.options import Seed, overrides
from rc1_lib.cli.session import Session
from rc1_lib.errors import TicketError


def verify(session: Session, seed: Seed = None) -> int:
    """Check everything that the ticket vouches for: files, code, configuration, judge.

    Give the flags of the preflight that issued it.
    """
    from rc1_lib.preflight.ticket import verify_ticket

    run = session.open(overrides({"pool.seed": seed}))
    ticket = verify_ticket(run)
    _print(session, ticket)
    words = "ticket valid: every file, the code and the configuration are those that passed both rounds"
    show_ending(session, Ending("pass", words, following=then(session, "train")))
    session.document({"valid": True, "ticket": ticket})
    return 0


def show(session: Session) -> int:
    """Print the ticket, without verifying it."""
    from rc1_lib.preflight.ticket import read_ticket

    ticket = read_ticket(session.open())
    _print(session, ticket)
    show_ending(session, Ending("done", "the ticket, not verified", following=then(session, "ticket verify")))
    session.document(ticket)
    return 0


def revoke(session: Session, reason: Annotated[str, typer.Option(help="Why; kept in the ticket.")]) -> int:
    """Revoke the ticket: no training starts with it any more, and it keeps the reason."""
    from rc1_lib.preflight.ticket import TICKET, read_ticket, revoke_ticket

    if not reason.strip():
        raise TicketError("--reason is empty; say why the ticket is revoked")
    run = session.open()
    if not revoke_ticket(run, reason):
        raise TicketError(f"{run.workspace.path(TICKET)}: there is no ticket to revoke")
    revoked = read_ticket(run)["revoked"]
    words = f"revoked at {revoked['time']}: {revoked['reason']}"
    show_ending(session, Ending("done", words, following=then(session, "preflight", when="for another ticket")))
    session.document({"revoked": revoked})
    return 0


def _print(session: Session, ticket: dict[str, Any]) -> None:
    revoked = ticket.get("revoked")
    session.show(f"ticket of profile {ticket['profile']}, issued {ticket['issued']}, expires {ticket['expires']}")
    session.show(
        f"commit {ticket['commit'] or 'unknown'}, judge {ticket['judge']['provider']} {ticket['judge']['spec']}"
    )
    signed = (ticket.get("envelope") or {}).get("signatures") or []
    session.show(
        f"signed by key {signed[0]['keyid'][:16]}" if signed else "not signed: docs/ticket.md says what it proves"
    )
    for word in ("waived", "not_applicable"):
        session.show(*(f"{word.replace('_', ' ')}: {name} ({why})" for name, why in ticket[word].items()))
    session.show(*(f"{(file['sha256'] or 'missing')[:16]}  {file['path']}" for file in ticket["files"].values()))
    if revoked:
        session.show(f"REVOKED at {revoked['time']}: {revoked['reason']}")
