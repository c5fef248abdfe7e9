"""What has to be there before the pool grows, and before profile `prod` trains on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.gates.gate_list import round_name
from rc1_lib.gates.spec import NIGHTLY
from rc1_lib.preflight.nights import NIGHTS, latest_night
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.run import Run
from rc1_lib.scale_up.record import read_record
from rc1_lib.scale_up.sizes import steps
from rc1_lib.workspace.artifacts import in_form

NIGHT_AGE = timedelta(days=1)
"""How old the passed nightly may be that a scale-up needs."""


def check_may_grow(run: Run) -> None:
    """Require a valid ticket, and a whole nightly that confirmed it within the last day.

    Raises:
        TicketError: when the ticket is missing or not valid.
        RC1Error: when there is no such night, or the latest one did not pass, or judged less or another ticket.
    """
    try:
        ticket = verify_ticket(run)
    except TicketError as cause:
        raise TicketError(f"the pool may not grow: {cause}") from None
    night, path = latest_night(run), run.workspace.path(NIGHTS)
    remedy = "start `prefect deployment run rc1/nightly` with the ticket's settings, then grow"
    if night is None:
        raise RC1Error(f"{path}: has no nightly with these settings, expected a passed one of the last day; {remedy}")
    with in_form(path):
        if night["outcome"] != "passed":
            raise RC1Error(
                f"{path}: the latest nightly {night['outcome']} ({night['verdict']}); mend that, and {remedy}"
            )
        lacking = {round_name(number) for number in (1, 2, NIGHTLY)} - night["gates"].keys()
        same, ended = night.get("ticket_sha256") == ticket["ticket_sha256"], datetime.fromisoformat(night["ended"])
        age = datetime.now(UTC) - ended
    if lacking or not same:
        fault = f"did not judge {', '.join(sorted(lacking))}" if lacking else "checked another ticket"
        raise RC1Error(f"{path}: the latest nightly passed, but {fault}; {remedy}")
    if age > NIGHT_AGE:
        raise RC1Error(f"{path}: the latest nightly ended {night['ended']}, expected one of the last day; {remedy}")


def check_grown(run: Run) -> None:
    """Require, in profile `prod`, that the pool has come through all sizes of a scale-up as it is now.

    Raises:
        RC1Error: when no passed scale-up covers a size, its files, the judge and the code.
    """
    if run.config.profile == "prod" and not all(read_record(run, step) for step in steps(run)):
        raise RC1Error(
            f"{run.workspace.path(run.config.pool.path)}: its {run.config.pool.n:,} rows have not come through a "
            f"scale-up as they are now, expected in profile prod; run `rc1 scale-up`, then train"
        )
