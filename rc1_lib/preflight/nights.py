"""The history of nightly runs: one line per night, however it ended, oldest first.

A line is appended under a lock, in one write, and synced. A partial last line, left by a kill or a full disk, is not a
night: readers skip it, and the next night truncates it. RC1 never removes a whole line.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import IO, Any, Self

import orjson
import polars as pl

from rc1_lib.calibration.judge_baseline import asked_store
from rc1_lib.errors import RC1Error
from rc1_lib.judge.judge import open_store
from rc1_lib.judge.store import LOG_SCHEMA
from rc1_lib.judge.usage import usage_figures
from rc1_lib.masking import conceal_tree, secrets
from rc1_lib.preflight.ticket import read_ticket
from rc1_lib.records import Check, GateResult
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import Workspace

NIGHTS = "reports/preflight/nights.jsonl"


_OUTCOMES_OF_0_1_0 = {"green": "passed", "red": "failed"}
_IN_CHECKS_OF_0_1_0 = ("the teacher", "the scripted expert")
"""Outcomes and names of checks that version 0.1.0 wrote; they are still read for one more version."""


class NightOutcome(StrEnum):
    """How a night ended."""

    PASSED = "passed"
    FAILED = "failed"
    """A gate failed, or the ticket is not valid."""
    REFUSED = "refused"
    """Nothing was judged: the configuration was rejected, or another run held the workspace."""
    ERROR = "error"
    CRASHED = "crashed"
    """Its process was killed; the process that had started it reported this."""


@dataclass(slots=True)
class Night:
    """A night in progress. As a context manager it records itself on exit, as an error unless `ended` was called.

    Attributes:
        id: the flow run's id; a night is recorded once, even if several processes report it.
        place: the workspace with the history.
        run: the run that was judged; None if the configuration was rejected.
        began: its start, in seconds since 1970.
        outcome: how it ended.
        verdict: its outcome in a sentence.
        rounds: round -> the gates' verdicts.
    """

    id: str
    place: Workspace
    run: Run | None = None
    began: float = field(default_factory=time.time)
    outcome: NightOutcome = NightOutcome.ERROR
    verdict: str = ""
    rounds: Mapping[str, Sequence[GateResult]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.broke_off(NightOutcome.ERROR, str(error) or type(error).__name__)
        self.keep()

    def ended(
        self, outcome: NightOutcome, verdict: str, rounds: Mapping[str, Sequence[GateResult]] | None = None
    ) -> None:
        """Set how it ended."""
        self.outcome, self.verdict, self.rounds = outcome, verdict, rounds or {}

    def broke_off(self, outcome: NightOutcome, words: str) -> None:
        """Set what ended it other than a verdict; an earlier verdict is kept, as the beginning of the error."""
        if self.verdict:
            self.ended(NightOutcome.ERROR, f"{self.verdict}; then {words}", self.rounds)
        else:
            self.ended(outcome, words)

    def keep(self) -> None:
        """Append it to the history, unless the history already has it or there is no workspace."""
        if self.place.root.is_dir():
            line = orjson.dumps(conceal_tree(self._record(), secrets()))
            _append(self.place, line, unless=orjson.dumps({"id": self.id})[1:-1])

    def _record(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "began": _iso(self.began),
            "ended": _iso(time.time()),
            "outcome": self.outcome.value,
            "verdict": self.verdict,
            "profile": self.run.config.profile if self.run else None,
            "config_sha256": self.run.config_sha256 if self.run else None,
            "ticket": _ticket(self.run) if self.run else None,
            "rounds": {name: [_brief(result) for result in results] for name, results in self.rounds.items()},
            "judge": _asked_since(self.run, self.began) if self.run else None,
        }


@dataclass(frozen=True, slots=True)
class KeptGate:
    """A gate's verdict in one round of a night.

    Attributes:
        round: `round1`, `round2` or `nightly`.
        name: the gate's name.
        status: as in `Status`.
        why: the error, the waiver, or what it waits for; empty if its checks decided.
        checks: the checks that decide; their comparisons are computed again, not trusted.
    """

    round: str
    name: str
    status: str
    why: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class KeptNight:
    """A night of the history.

    Attributes:
        began: its start.
        outcome: how it ended.
        verdict: its outcome in a sentence.
        config_sha256: SHA-256 of the configuration; None if that was rejected.
        revoked: why the ticket was revoked at its end; None if it was not, or if there was none.
        gates: the gates, in the order in which they were judged.
        judge: figures of `UsageFigures` by name, without those that could not be read.
    """

    began: datetime
    outcome: NightOutcome
    verdict: str
    config_sha256: str | None
    revoked: str | None
    gates: tuple[KeptGate, ...]
    judge: Mapping[str, Any]


def parse_nights(content: bytes, name: str) -> list[KeptNight]:
    """Parse a history and return its nights, oldest first; a partial last line is skipped.

    Args:
        content: the file's bytes.
        name: its name in errors.

    Raises:
        RC1Error: when a whole line is not a night.
    """
    nights = []
    for number, line in enumerate(content[: _whole(content)].splitlines(), 1):
        try:
            nights.append(_night(orjson.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RC1Error(
                f"{name}, line {number}: is not a record of a night ({type(error).__name__}: {error}); remove the "
                f"line, or move the file away, so that the next night starts a new one"
            ) from None
    return sorted(nights, key=lambda night: night.began)


def _night(body: Mapping[str, Any]) -> KeptNight:
    began = datetime.fromisoformat(body["began"])
    if began.tzinfo is None:
        raise ValueError(f"began is {body['began']}, expected a time with a time zone")
    sha256, revoked = body["config_sha256"], (body["ticket"] or {}).get("revoked")
    return KeptNight(
        began=began,
        outcome=NightOutcome(_OUTCOMES_OF_0_1_0.get(body["outcome"], body["outcome"])),
        verdict=str(body["verdict"]),
        config_sha256=None if sha256 is None else str(sha256),
        revoked=None if revoked is None else str(revoked),
        gates=tuple(_gate(name, one) for name, gates in body["rounds"].items() for one in gates),
        judge=dict(body["judge"] or {}),
    )


def _gate(round_name: str, body: Mapping[str, Any]) -> KeptGate:
    named = [{**one, "name": str(one["name"]).replace(*_IN_CHECKS_OF_0_1_0)} for one in body["checks"]]
    checks = tuple(Check.from_dict(one) for one in named)
    return KeptGate(round_name, str(body["name"]), str(body["status"]), str(body["why"]), checks)


def _brief(result: GateResult) -> dict[str, Any]:
    """Return a verdict without advice, evidence and offenders, which are in the reports."""
    return {
        "name": result.name,
        "status": result.status.value,
        "why": result.error or result.waiver or result.waits_for,
        "checks": [_check(check) for check in result.checks if check.op != "info"],
    }


def _check(check: Check) -> dict[str, Any]:
    return {name: part for name, part in check.to_dict().items() if name != "advice"}


def _ticket(run: Run) -> dict[str, Any] | None:
    try:
        ticket = read_ticket(run)
    except RC1Error:
        return None
    return {
        "issued": ticket["issued"],
        "expires": ticket["expires"],
        "revoked": (ticket["revoked"] or {}).get("reason"),
    }


def _asked_since(run: Run, began: float) -> dict[str, Any]:
    """Return usage figures of the judge's stores since the night began, whichever process called the judge."""
    found = [pl.DataFrame(schema=LOG_SCHEMA)]
    try:
        for where in (run.config.judge.store.path, asked_store(run)):
            if run.workspace.path(where).is_file():
                with open_store(run, where) as store:
                    found.append(store.log().filter(pl.col("started") >= began))
    except RC1Error as error:
        return {"unreadable": str(error)}
    return asdict(usage_figures(pl.concat(found), run.config.gates.stability.max_variance))


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _append(place: Workspace, line: bytes, unless: bytes) -> None:
    with _locked(place) as stream:
        content = stream.read()
        whole = _whole(content)
        if unless in content[:whole]:
            return
        stream.truncate(whole)
        between = b"" if content[:whole].endswith(b"\n") or not whole else b"\n"
        stream.write(between + line + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _locked(place: Workspace) -> Iterator[IO[bytes]]:
    """Open the history under a lock, which the kernel releases even if the process is killed."""
    path = place.path(NIGHTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644), "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream


def _whole(content: bytes) -> int:
    """Return the length of the whole lines. A last line that lacks only its newline counts as whole."""
    end = content.rfind(b"\n") + 1
    try:
        return len(content) if isinstance(orjson.loads(content[end:]), dict) else end
    except ValueError:
        return end
