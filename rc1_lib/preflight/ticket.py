"""The ticket: what two passed rounds vouch for, for how long, and how training verifies it.

The ticket's digest reveals an accidental or careless edit. It is not a signature: anyone who can write to the workspace
can compute it again. With a key (`rc1_lib.preflight.ticket_key`) the same content, `stated`, is also signed. A
revocation is written later, so neither covers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from rc1_lib.config.file import flatten
from rc1_lib.config.foreign_gates import foreign_facts
from rc1_lib.config.hub_name import check_pinned
from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.preflight.round_files import FAILED
from rc1_lib.preflight.ticket_key import listed_causes, revoke_for_good, signature_causes
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import Described
from rc1_lib.provenance.git import code_named, read_code
from rc1_lib.provenance.pinned_files import check_vouched
from rc1_lib.run import Run, without_free_keys
from rc1_lib.training.base_tokens import check_tokens
from rc1_lib.training.derived import BASE
from rc1_lib.vouched import VOUCHED, bound
from rc1_lib.workspace.artifacts import now, read_json, sha256_json, write_checksum, write_json
from rc1_lib.workspace.file_hashes import sha256_file

TICKET = "reports/preflight/ticket.json"
AGAIN = "run `rc1 preflight` again"


class _Print(BaseModel):
    path: str
    sha256: str | None


class _Revocation(BaseModel):
    time: str
    reason: str


class _Judge(BaseModel):
    __pydantic_extra__: dict[str, str]
    model_config = ConfigDict(extra="allow")
    provider: str
    spec: str


class _Signature(BaseModel):
    keyid: str


class _Envelope(BaseModel):
    signatures: list[_Signature]


class _Package(BaseModel):
    version: str | None
    sha256: str


class Ticket(BaseModel):
    """The form that a file must have to be read as a ticket; whether the ticket is valid is checked separately."""

    model_config = ConfigDict(strict=False)
    version: Literal[1]
    profile: str
    issued: AwareDatetime
    expires: AwareDatetime
    commit: str | None
    package: _Package | None = None
    foreign_gates: dict[str, dict[str, str]]
    files: dict[str, _Print]
    reports: dict[str, _Print]
    judge: _Judge
    waived: dict[str, str]
    not_applicable: dict[str, str]
    config: dict[str, Any]
    envelope: _Envelope | None = None
    ticket_sha256: str | None
    revoked: _Revocation | None


def write_ticket(run: Run, ticket: Mapping[str, Any]) -> None:
    """Write a ticket to the workspace, with its checksum."""
    write_json(run.workspace.path(TICKET), ticket)
    write_checksum(run.workspace, TICKET)


def stated(ticket: dict[str, Any]) -> dict[str, Any]:
    """Return what a ticket states when it is issued, which its digest and its signature cover."""
    return {key: value for key, value in ticket.items() if key not in ("ticket_sha256", "envelope", "revoked")}


def digest_of(ticket: dict[str, Any]) -> str:
    """Return the SHA-256 of what a ticket states."""
    return sha256_json(stated(ticket))


def read_ticket(run: Run) -> dict[str, Any]:
    """Return the ticket of the workspace, unverified.

    Raises:
        TicketError: when there is none, or the file is not a ticket.
    """
    path = run.workspace.path(TICKET)
    try:
        ticket = read_json(path)
    except FileNotFoundError:
        raise TicketError(f"{path}: there is no ticket; run `rc1 preflight` and pass both rounds") from None
    except ValueError as error:
        raise TicketError(f"{path}: is not JSON ({error}); {AGAIN}") from None
    except OSError as error:
        raise TicketError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
    try:
        Ticket.model_validate(ticket)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise TicketError(f"{path}: is not a ticket: {where}: {fault['msg']}; {AGAIN}") from None
    return dict(ticket)


def verify_ticket(run: Run, at: datetime | None = None) -> dict[str, Any]:
    """Check everything that the ticket pins against its current state, and return the ticket.

    Args:
        at: the time to check for; default: now.

    Raises:
        TicketError: names every reason why the ticket is not valid.
    """
    ticket = read_ticket(run)
    causes = [
        *_own_causes(ticket, at or datetime.now(UTC)),
        *_revoked(run, ticket),
        *signature_causes(run, ticket, stated(ticket)),
    ]
    if (profile := ticket.get("profile")) != (ours := run.config.profile):  # all other differences follow from that
        causes.append(
            f"it was issued for profile '{profile}', not for '{ours}'; give the flags of its preflight, or {AGAIN} "
            f"with profile '{ours}'"
        )
    else:
        causes += [*_run_causes(ticket, run), *_file_causes(ticket, run), *_report_causes(ticket, run)]
    if causes:
        raise TicketError("the ticket is not valid: " + "; ".join(causes))
    return ticket


def check_same_settings(run: Run) -> None:
    """Reject a night whose settings are not the ticket's: what it finds would say nothing about the ticket.

    A file that is no ticket passes here, since `verify_ticket` says what is wrong with it.

    Raises:
        ConfigError: names the settings that differ.
    """
    try:
        ticket = read_ticket(run)
    except TicketError:
        return
    theirs, ours = ticket.get("profile"), run.config.profile
    if theirs != ours:
        differ = f"profile is {ours}, the ticket has {theirs}"
    elif ticket.get("config_sha256") != run.config_sha256:
        differ = _differences(ticket["config"], run)
    else:
        return
    raise ConfigError(
        f"the ticket was not checked, because this run has other settings ({differ}); start rc1/nightly with those of "
        f"the ticket's preflight (parameters profile, config, overrides)"
    )


def _own_causes(ticket: dict[str, Any], at: datetime) -> list[str]:
    causes = []
    if ticket["revoked"] is None and ticket.get("ticket_sha256") != digest_of(ticket):
        causes.append("it was edited after it was issued (its digest does not match)")
    shape = Ticket.model_validate(ticket)
    if at >= shape.expires:
        causes.append(f"it expired at {ticket['expires']}; {AGAIN}")
    if shape.issued - at > timedelta(minutes=5):  # no sum, which overflows in the year 9999
        causes.append(f"it was issued in the future ({ticket['issued']}); check the clock")
    return causes


def _revoked(run: Run, ticket: dict[str, Any]) -> list[str]:
    """Return every revocation: the ticket's own note, the lists, and a second round that has failed since."""
    noted = ticket["revoked"]
    listed = listed_causes(run, Ticket.model_validate(ticket).issued, digest_of(ticket))
    causes = [f"it was revoked at {noted['time']}: {noted['reason']}"] if noted else []
    causes += [one for one in listed if one not in causes]
    if run.workspace.path(FAILED[2]).exists():  # a round that passes removes it
        causes.append(f"round 2 has failed since ({FAILED[2]})")
    return causes


def _run_causes(ticket: dict[str, Any], run: Run) -> list[str]:
    causes = []
    if ticket.get("code_sha256") != code_sha256():
        issued = f"by {_named(ticket)}, this is {_named(_here())}"
        causes.append(f"the code has changed since it was issued ({issued}); {AGAIN}")
    if (theirs := ticket["foreign_gates"]) != (ours := foreign_facts()):
        causes.append(f"gates of other packages differ ({_differing(ours, theirs)}); {AGAIN}")
    if ticket.get("config_sha256") != run.config_sha256:
        causes.append(
            f"the effective configuration differs ({_differences(ticket['config'], run)}); leave away the "
            f"flags that change them, or {AGAIN}"
        )
    try:
        judge = judge_identity(run)
    except RC1Error as error:
        return [*causes, str(error)]
    if ticket.get("judge") != judge:
        theirs = ticket.get("judge") or {}
        causes.append(f"the judge differs ({_differing(judge, theirs)})")
    return causes


def other_code(ticket: Mapping[str, Any]) -> str:
    """Say that a valid ticket was issued by another commit or package; "" if it was not.

    What such a ticket vouches for is the same code: what differs makes nothing and judges nothing.
    """
    then, here = _named(ticket), _named(_here())
    if then == here:
        return ""
    return f"issued by {then}, this is {here}; the code that makes data, trains and judges is the same"


def _here() -> Mapping[str, Any]:
    return code_named(read_code())


def _named(code: Mapping[str, Any]) -> str:
    if package := code.get("package"):
        return f"package {package['version']} (SHA-256 {str(package['sha256'])[:12]})"
    return f"commit {str(code['commit'] or 'unknown')[:12]}"


def _differences(then: dict[str, Any], run: Run, most: int = 5) -> str:
    """Return the first few keys in which the ticket's configuration and this run's differ."""
    issued, ours = (flatten(without_free_keys(config)) for config in (then, run.config.model_dump(mode="json")))
    return _differing(ours, issued, most)


def _differing(ours: Mapping[str, Any], issued: Mapping[str, Any], most: int = 5) -> str:
    keys = [key for key in sorted({*issued, *ours}) if issued.get(key) != ours.get(key)]
    named = ", ".join(f"{key} is {ours.get(key)}, the ticket has {issued.get(key)}" for key in keys[:most])
    return named + (f" and {len(keys) - most} more" if len(keys) > most else "")


def _file_causes(ticket: dict[str, Any], run: Run) -> list[str]:
    """Check all files that the ticket lists and all that this run would read: either list may lack some."""
    vouched, needed = ticket["files"], bound(run)
    causes = []
    for name in dict.fromkeys([*vouched, *needed]):
        wanted = vouched.get(name) or {}
        if wanted.get("sha256") is None:
            causes.append(f"it does not pin {name}")
        elif name not in VOUCHED:
            causes.append(f"it pins {name} ({wanted.get('path')}), which this version of RC1 does not read")
        else:
            causes += _causes_of(VOUCHED[name], run, wanted["sha256"])
    if "base" not in vouched:
        try:
            check_base(run)
        except ConfigError as error:
            causes.append(str(error))
    return causes


def check_base(run: Run) -> None:
    """Reject a base on the hub without a commit, since no ticket could pin its bytes, and one that cannot be trained.

    Raises:
        ConfigError: says how to pin it, or which of its tokens has no embedding.
    """
    if BASE.applies(run):
        check_tokens(run.workspace.find(run.config.base_model))
    else:
        check_pinned(run.config.base_model, "base_model")


def _report_causes(ticket: dict[str, Any], run: Run) -> Iterator[str]:
    for name, one in ticket["reports"].items():
        if _now(run, one["path"])[1] != one["sha256"]:
            yield f"the report of {name} ({one['path']}) has changed or is missing"


def _now(run: Run, report: str) -> tuple[Path, str | None]:
    """Return a report's path and its fingerprint, None if it is missing."""
    path = run.workspace.path(report)
    return path, sha256_file(path) if path.is_file() else None


def _causes_of(one: Described, run: Run, wanted: str) -> list[str]:
    path = one.path(run)
    if not path.exists():
        return [f"{run.workspace.name(path)} is missing"]
    try:
        return [] if one.sha256(run) == wanted else [f"{run.workspace.name(path)} has changed"]
    except RC1Error as error:  # for example a folder instead of a file
        return [str(error)]


def vouched_by(ticket: dict[str, Any]) -> dict[str, str]:
    """Return name -> SHA-256 of everything that a verified ticket pins, for `Run.vouched`."""
    return {name: one["sha256"] for part in ("files", "reports") for name, one in ticket[part].items()}


def check_unchanged(run: Run) -> None:
    """Check again everything that the ticket pinned when the run began.

    Raises:
        TicketError: when the ticket was revoked, or when a file has changed or is gone, which it names.
    """
    if run.vouched is None:
        return
    ticket = read_ticket(run)
    if causes := _revoked(run, ticket):
        raise TicketError(f"the ticket of this training is no longer valid: {'; '.join(causes)}")
    for name in dict.fromkeys([*run.vouched, *bound(run)]):
        if name in ticket["reports"]:
            check_vouched(run, name, *_now(run, ticket["reports"][name]["path"]))
        else:
            one = VOUCHED[name]
            check_vouched(run, name, one.path(run), one.sha256(run) if one.path(run).exists() else None)


def revoke_ticket(run: Run, reason: str) -> bool:
    """Mark the ticket as revoked, with time and reason, without removing it.

    All tickets issued until now are also listed as revoked, in the workspace and next to a key, because a note in the
    ticket could be removed, and a copy of an older ticket could be put back.

    Returns:
        Whether there was a ticket to revoke; a ticket that was revoked before keeps its first reason.

    Raises:
        RC1Error: when the key cannot be used, or a list cannot be written; the ticket is marked nevertheless.
    """
    try:
        ticket = read_ticket(run)
    except RC1Error:
        revoke_for_good(run, None, reason)
        return False
    if ticket["revoked"] is None:
        # Without its digest the ticket stays invalid even if somebody removes the note.
        revoked = {**ticket, "ticket_sha256": None, "revoked": {"time": now(), "reason": reason}}
        write_ticket(run, revoked)
    revoke_for_good(run, digest_of(ticket), reason)
    return True
