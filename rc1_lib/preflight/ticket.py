"""The ticket: what two passed rounds vouch for, for how long, and the checks that training makes before it believes it.

The ticket's own digest shows an accidental or careless edit, and is no signature: whoever can write the workspace can
work it out again. With a key (`rc1_lib.preflight.ticket_key`) what the digest covers, `stated`, is signed as well; the
revocation is written later, and lies next to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from rc1_lib.config.file import departures, flatten
from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.evidence import NAMES, Evidence, bound, described
from rc1_lib.gates.machine import code_named, read_code
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.preflight.gate_list import evaluate
from rc1_lib.preflight.preconditions import check_base, check_can_issue
from rc1_lib.preflight.round_report import FAILED, PASSED, fingerprints, read_round, round_faults
from rc1_lib.preflight.ticket_key import envelope_of, listed_causes, revoke_for_good, signature_causes
from rc1_lib.provenance.code import code_sha256, read_package
from rc1_lib.provenance.derived import Described
from rc1_lib.provenance.pinned_files import check_vouched
from rc1_lib.records import PASSING
from rc1_lib.run import Run, published_config, without_free_keys
from rc1_lib.workspace.artifacts import INSTALLED, now, read_json, sha256_json, write_json
from rc1_lib.workspace.file_hashes import forget_hashes, sha256_file

TICKET = "reports/preflight/ticket.json"
_VERSION = 1
_AGAIN = "run `rc1 preflight` again"


def _within_reach(value: datetime) -> datetime:
    if not _FIRST_YEAR <= value.year < _LAST_YEAR:
        raise ValueError(f"found the year {value.year}, expected one from {_FIRST_YEAR} on and before {_LAST_YEAR}")
    return value


_FIRST_YEAR, _LAST_YEAR = 2000, 9000
"""What can be reckoned with: at the ends of the calendar an hour more is no time any more."""
_Time = Annotated[AwareDatetime, AfterValidator(_within_reach)]


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
    """What a file must look like to be read as a ticket at all; whether it holds is another question."""

    model_config = ConfigDict(strict=False)
    version: Literal[1]
    profile: str
    issued: _Time
    expires: _Time
    commit: str | None
    package: _Package | None = None
    files: dict[str, _Print]
    reports: dict[str, _Print]
    judge: _Judge
    waived: dict[str, str]
    not_applicable: dict[str, str]
    config: dict[str, Any]
    envelope: _Envelope | None = None
    ticket_sha256: str | None
    revoked: _Revocation | None


def issue_ticket(run: Run) -> dict[str, Any]:
    """Issue the ticket that two passed rounds earn.

    Raises:
        TicketError: when a round is missing or failed, or when anything changed between the rounds or since.
        RC1Error: when the base is on the hub, and no commit is named; when the key that is asked for cannot sign.
    """
    check_can_issue(run)
    forget_hashes()
    evidence = Evidence(run)
    files = fingerprints(evidence)
    reports: dict[str, dict[str, str]] = {}
    rounds = []
    for number in PASSED:
        report = read_round(run, number) or {}
        if faults := round_faults(run, report, number, files):
            raise TicketError(f"no ticket: {'; '.join(faults)}; {_AGAIN}")
        rounds.append(report)
        path = run.workspace.path(PASSED[number])
        reports[f"round{number}"] = {"path": PASSED[number], "sha256": sha256_file(path)}
    issued = datetime.now(UTC)
    body: dict[str, Any] = {
        "version": _VERSION,
        "profile": run.config.profile,
        "issued": issued.isoformat(timespec="seconds"),
        "expires": (issued + timedelta(hours=run.config.ticket.ttl_hours)).isoformat(timespec="seconds"),
        **code_named(read_code()),
        "code_sha256": code_sha256(),
        "config_sha256": run.config_sha256,
        "overrides": list(run.overrides),
        "judge": judge_identity(run),
        "files": files,
        "reports": reports,
        **_from_rounds(run, rounds),
    }
    ticket = {**body, "ticket_sha256": sha256_json(body), "envelope": envelope_of(run, body), "revoked": None}
    write_json(run.workspace.path(TICKET), ticket)
    return ticket


def _from_rounds(run: Run, rounds: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What a ticket says of the configuration, and of what its rounds waived."""
    return {
        "config": run.config.model_dump(mode="json"),
        "waived": {name: why for report in rounds for name, why in report["waived"].items()},
        "not_applicable": {name: why for report in rounds for name, why in report["not_applicable"].items()},
        "thresholds_changed": departures(run.config, published_config()),
    }


def stated(ticket: dict[str, Any]) -> dict[str, Any]:
    """All that a ticket states when it is issued: what its digest and its signature cover."""
    return {key: value for key, value in ticket.items() if key not in ("ticket_sha256", "envelope", "revoked")}


def _digest(ticket: dict[str, Any]) -> str:
    return sha256_json(stated(ticket))


def read_ticket(run: Run) -> dict[str, Any]:
    """The ticket as it lies in the workspace, unverified.

    Raises:
        TicketError: when there is none, or it is not a ticket.
    """
    path = run.workspace.path(TICKET)
    try:
        ticket = read_json(path)
    except FileNotFoundError:
        raise TicketError(f"{path}: there is no ticket; run `rc1 preflight` and pass both rounds") from None
    except ValueError as error:
        raise TicketError(f"{path}: is not JSON ({error}); {_AGAIN}") from None
    except OSError as error:
        raise TicketError(f"{path}: cannot be read ({error.strerror}), expected a file; {_AGAIN}") from None
    try:
        Ticket.model_validate(ticket)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise TicketError(f"{path}: is not a ticket: {where}: {fault['msg']}; {_AGAIN}") from None
    return dict(ticket)


def verify_ticket(run: Run, at: datetime | None = None) -> dict[str, Any]:
    """Check everything the ticket vouches for against what is there now, and return the ticket.

    Args:
        run: the run that wants to train: its profile, its effective configuration and its workspace.
        at: the time to check for; default: now.

    Raises:
        TicketError: naming every cause of refusal.
    """
    ticket = read_ticket(run)
    causes = [
        *_own_causes(ticket, at or datetime.now(UTC), run.config.ticket.ttl_hours),
        *_revoked(run, ticket),
        *signature_causes(run, ticket, stated(ticket)),
    ]
    if (profile := ticket.get("profile")) != (ours := run.config.profile):  # whatever else differs follows from that
        causes.append(
            f"it is of profile '{profile}' and opens no run of profile '{ours}'; give the flags of its preflight, or "
            f"{_AGAIN} in profile '{ours}'"
        )
    else:
        another_run = _run_causes(ticket, run)
        causes += [
            *another_run,
            *_file_causes(ticket, run),
            *_report_causes(ticket, run, look_inside=not another_run),
        ]
    causes = causes or list(_verdict_causes(run))
    if causes:
        raise TicketError("the ticket is refused: " + "; ".join(causes))
    return ticket


def _own_causes(ticket: dict[str, Any], at: datetime, ttl_hours: float) -> list[str]:
    causes = []
    if ticket["revoked"] is None and ticket.get("ticket_sha256") != _digest(ticket):
        causes.append("it was edited after it was issued (its digest does not fit)")
    shape = Ticket.model_validate(ticket)
    issued, expires = shape.issued, shape.expires
    if expires > issued + timedelta(hours=ttl_hours):
        causes.append(f"it claims to hold longer than ticket.ttl_hours ({ttl_hours:g} h)")
    if at >= expires:
        causes.append(f"it expired at {ticket['expires']}; {_AGAIN}")
    if at < issued - timedelta(minutes=5):
        causes.append(f"it was issued in the future ({ticket['issued']}); check the clock")
    return causes


def _revoked(run: Run, ticket: dict[str, Any]) -> list[str]:
    """Every word that the ticket holds no more: its own note, the lists, and a second round that failed since."""
    noted = ticket["revoked"]
    listed = listed_causes(run, Ticket.model_validate(ticket).issued, _digest(ticket))
    causes = [f"it was revoked at {noted['time']}: {noted['reason']}"] if noted else []
    causes += [one for one in listed if one not in causes]
    if run.workspace.path(FAILED[2]).exists():  # a round that passes removes it
        causes.append(f"round 2 has failed since ({FAILED[2]})")
    return causes


def _run_causes(ticket: dict[str, Any], run: Run) -> list[str]:
    causes, package = [], ticket.get("package")
    if ticket.get("code_sha256") != code_sha256():
        commit = str(ticket.get("commit"))[:12]
        issued = f"by the package {package}" if package else f"at commit {commit}"
        causes.append(f"the code has changed since (issued {issued}); {_AGAIN}")
    if package and INSTALLED and package != (here := read_package().facts()):
        causes.append(f"the installed package is another one: the ticket names {package}, this is {here}; {_AGAIN}")
    if ticket.get("config_sha256") != run.config_sha256:
        causes.append(
            f"the effective configuration is another one ({_differences(ticket['config'], run)}); verify with the "
            f"preflight's own --config, --set and --sources, or {_AGAIN}"
        )
    try:
        judge = judge_identity(run)
    except RC1Error as error:
        return [*causes, str(error)]
    if ticket.get("judge") != judge:
        theirs = ticket.get("judge") or {}
        causes.append(f"the judge is another one ({_differing(judge, theirs)})")
    return causes


def _differences(then: dict[str, Any], run: Run, most: int = 5) -> str:
    """The first few keys that the ticket's configuration and this run's do not share."""
    issued, ours = (flatten(without_free_keys(config)) for config in (then, run.config.model_dump(mode="json")))
    return _differing(ours, issued, most)


def _differing(ours: Mapping[str, Any], issued: Mapping[str, Any], most: int = 5) -> str:
    keys = [key for key in sorted({*issued, *ours}) if issued.get(key) != ours.get(key)]
    named = ", ".join(f"{key} is {ours.get(key)}, the ticket has {issued.get(key)}" for key in keys[:most])
    return named + (f" and {len(keys) - most} more" if len(keys) > most else "")


def _file_causes(ticket: dict[str, Any], run: Run) -> list[str]:
    """Over all that the ticket names and all that this run would read: neither alone is enough."""
    vouched, needed = ticket["files"], bound(run)
    causes = []
    for name in dict.fromkeys([*vouched, *needed]):
        wanted = vouched.get(name) or {}
        if wanted.get("sha256") is None:
            causes.append(f"it does not vouch for {name}")
        elif name not in NAMES:
            causes.append(f"it vouches for {name} ({wanted.get('path')}), which this RC1 does not read")
        else:
            causes += _causes_of(described(name), run, wanted["sha256"])
    if "base" not in vouched:
        try:
            check_base(run)
        except ConfigError as error:
            causes.append(str(error))
    return causes


def _report_causes(ticket: dict[str, Any], run: Run, look_inside: bool) -> list[str]:
    """Over both rounds' reports; what they contain says something about the run that the ticket is for alone."""
    causes, rounds = [], []
    for name, (path, sha256) in _reports(run).items():
        if sha256 is None or sha256 != (ticket["reports"].get(name) or {}).get("sha256"):
            causes.append(f"the report of {name} ({path}) has changed or is missing")
        elif look_inside:
            rounds.append(read_round(run, _NUMBERS[name]) or {})
            causes += round_faults(run, rounds[-1], _NUMBERS[name], ticket["files"])
    if look_inside and not causes:
        theirs = {**ticket, "config": without_free_keys(ticket["config"])}
        ours = _from_rounds(run, rounds)
        ours["config"] = without_free_keys(ours["config"])
        wrong = [f"'{key}'" for key, value in ours.items() if sha256_json(theirs.get(key)) != sha256_json(value)]
        causes += [f"it does not say what its rounds say ({', '.join(wrong)})"] if wrong else []
    return causes


def _verdict_causes(run: Run) -> Iterator[str]:
    """What the ticket names no fingerprint of, but training looks at: manifests, and the calibration's report."""
    evidence = Evidence(run)
    for name in ("integrity", "weights"):
        result = evaluate(name, evidence, max(PASSED))
        if result.status not in PASSING:
            why = result.error or "; ".join(f"{one.name} is {one.value}" for one in result.failures)
            yield f"the gate {name} no longer passes ({why}); {_AGAIN}"


def _causes_of(one: Described, run: Run, wanted: str) -> list[str]:
    path = one.path(run)
    if not path.exists():
        return [f"{run.workspace.name(path)} is missing"]
    try:
        return [] if one.sha256(run) == wanted else [f"{run.workspace.name(path)} has changed"]
    except RC1Error as error:  # a folder in a file's place
        return [str(error)]


_NUMBERS = {f"round{number}": number for number in PASSED}


def _reports(run: Run) -> dict[str, tuple[str, str | None]]:
    """Name of a round -> its report's path and fingerprint; None where it is not there."""
    paths = {name: run.workspace.path(PASSED[number]) for name, number in _NUMBERS.items()}
    return {
        name: (PASSED[_NUMBERS[name]], sha256_file(path) if path.is_file() else None) for name, path in paths.items()
    }


def vouched_by(ticket: dict[str, Any]) -> dict[str, str]:
    """Name -> SHA-256 of all that a verified ticket vouches for: what a run that it opens goes by (`Run.vouched`)."""
    return {name: one["sha256"] for part in ("files", "reports") for name, one in ticket[part].items()}


def check_unchanged(run: Run) -> None:
    """Look again at everything that the ticket vouches for, as it was verified when the run began.

    Raises:
        TicketError: when the ticket was revoked, or naming the first thing that is gone or has changed since.
    """
    if run.vouched is None:
        return
    if causes := _revoked(run, read_ticket(run)):
        raise TicketError(f"the ticket that opened this training is refused: {'; '.join(causes)}")
    for name in dict.fromkeys([*run.vouched, *bound(run)]):
        if name in _NUMBERS:
            path, sha256 = _reports(run)[name]
            check_vouched(run, name, run.workspace.path(path), sha256)
        else:
            one = described(name)
            check_vouched(run, name, one.path(run), one.sha256(run) if one.path(run).exists() else None)


def revoke_ticket(run: Run, reason: str) -> bool:
    """Mark the ticket as revoked, with time and reason; it stays where it is, for whoever asks why.

    Whatever was issued until now is listed as revoked, in the workspace and next to a key: a note in the ticket can be
    struck out, and a ticket that was taken away in time can be put back.

    Returns:
        Whether there was a ticket to revoke; one that was revoked before keeps its first reason.

    Raises:
        RC1Error: when the key cannot be used, or a list cannot be written; the note is made all the same.
    """
    try:
        ticket = read_ticket(run)
    except RC1Error:
        revoke_for_good(run, None, reason)
        return False
    if ticket["revoked"] is None:
        # Without its digest a revoked ticket stays refused where the note alone is struck out.
        revoked = {**ticket, "ticket_sha256": None, "revoked": {"time": now(), "reason": reason}}
        write_json(run.workspace.path(TICKET), revoked)
    revoke_for_good(run, _digest(ticket), reason)
    return True
