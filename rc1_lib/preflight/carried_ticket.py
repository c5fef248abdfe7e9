"""The ticket that a training carried, compared with today's before its policy or its evaluation is used.

A later preflight may vouch for other data than the policy learned from. Both tickets may differ in what does not affect
a policy, such as the time of issue, so what they pin is compared: files, code, settings and judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.evaluation.derived import TRAINING_REPORT
from rc1_lib.preflight.ticket import read_ticket
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.workspace.artifacts import read_json, sha256_json

_AGAIN = (
    "run `rc1 train` again, which repeats only what changed (with --start-over if it names checkpoints of another run)"
)
_SHOWN = 6


class CarriedTicket(BaseModel):
    """The entry `ticket` of `reports/train.json`.

    Attributes:
        ticket_sha256: its digest; None for a revoked ticket.
        pins: name -> SHA-256 of everything that it pins: files, `code`, `settings` and `judge`.
    """

    issued: str
    ticket_sha256: str | None
    pins: dict[str, str]

    def __str__(self) -> str:
        return f"the ticket of {self.issued} ({(self.ticket_sha256 or 'revoked')[:12]})"


def carried(ticket: Mapping[str, Any]) -> CarriedTicket:
    """Return what a training's report records of its ticket.

    Args:
        ticket: a ticket in its own form, verified or not.
    """
    return CarriedTicket(
        issued=str(ticket["issued"]),
        ticket_sha256=ticket["ticket_sha256"],
        pins={
            **{name: str(one["sha256"]) for name, one in ticket["files"].items()},
            "code": str(ticket.get("code_sha256")),
            "settings": str(ticket.get("config_sha256")),
            "judge": sha256_json(ticket["judge"]),
        },
    )


def why_outdated(training: Mapping[str, Any], ticket: Mapping[str, Any]) -> str:
    """Say why today's ticket does not vouch for a training; "" if it does."""
    now = carried(ticket)
    try:
        then = CarriedTicket.model_validate(training.get("ticket"))
    except ValidationError:
        return f"{TRAINING_REPORT} does not say which ticket the training carried; today's is {now}; {_AGAIN}"
    differ = [name for name in sorted({*then.pins, *now.pins}) if then.pins.get(name) != now.pins.get(name)]
    if not differ:
        return ""
    shown = ", ".join(differ[:_SHOWN]) + (f" and {len(differ) - _SHOWN} more" if len(differ) > _SHOWN else "")
    return f"the policy was trained under {then}, but today's is {now}, which pins another {shown}; {_AGAIN}"


def check_still_vouched(run: Run, path: Path, checkpoint: str) -> None:
    """Reject a policy of the latest training if today's ticket vouches for something else.

    A checkpoint of another run passes, such as one of an interrupted training: no report says what its ticket was.

    Args:
        run: workspace and configuration.
        path: the policy's checkpoint, or a file made from it.

    Raises:
        TicketError: names both tickets, what differs, and what to do; or there is no ticket any more.
    """
    try:
        training = read_json(run.workspace.path(TRAINING_REPORT))
        own = any(_is_of(run, trained, path, checkpoint) for trained in training["runs"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if own and (why := why_outdated(training, read_ticket(run))):
        raise TicketError(f"{path}: {why}")


def _is_of(run: Run, trained: Mapping[str, Any], path: Path, checkpoint: str) -> bool:
    """Return whether a checkpoint is a run's last one, or lies next to it: a folder has checkpoints of one run only."""
    if checkpoint == trained["sha256"]:
        return True
    last = run.workspace.path(trained["checkpoint"])
    if path.parent.resolve() != last.parent.resolve():
        return False
    try:
        return bool(fingerprint(last) == trained["sha256"])
    except RC1Error:  # another run has removed it
        return False
