"""The history of the nightly: a line for every night, passed, failed, refused, faulty or killed, oldest first.

A line is appended in one write below a lock and synced. What a kill or a full disk leaves of one after the last whole
line is no night: readers pass over it, and the next night cuts it off. Nobody but people ever removes a line.
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
"""Read for one version more."""


class NightOutcome(StrEnum):
    """How a night ended."""

    PASSED = "passed"
    FAILED = "failed"
    """A gate failed, or the ticket does not hold."""
    REFUSED = "refused"
    """Nothing was judged: the configuration was refused, or another run was at work."""
    ERROR = "error"
    CRASHED = "crashed"
    """Its process was killed; whoever had started it says so."""


@dataclass(slots=True)
class Night:
    """A night under way. As a context it is kept at its end, whatever that is; one that says nothing else is an error.

    Attributes:
        id: of the flow run; a night is kept once, however many report it.
        place: whose history.
        run: what was judged; None where the configuration was refused.
        began: when, seconds since 1970.
        outcome: how it ended.
        verdict: in a sentence.
        rounds: the gates' verdicts, by round.
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
        """Say how it ended."""
        self.outcome, self.verdict, self.rounds = outcome, verdict, rounds or {}

    def broke_off(self, outcome: NightOutcome, words: str) -> None:
        """Say what ended it otherwise than by a verdict; one that it had come to stays, and is an error's beginning."""
        if self.verdict:
            self.ended(NightOutcome.ERROR, f"{self.verdict}; then {words}", self.rounds)
        else:
            self.ended(outcome, words)

    def keep(self) -> None:
        """Append it to the history, unless it is there already, or there is no workspace to keep it in."""
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
        name: of the gate.
        status: as in `Status`.
        why: the error, the waiver, or what it waits for; empty where its checks speak.
        checks: those that decide; their comparisons are worked out again, not believed.
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
        began: when.
        outcome: how it ended.
        verdict: in a sentence.
        config_sha256: of the configuration by which it judged; None where that was refused.
        revoked: why the ticket was revoked at its end; None where it was not, or there was none.
        gates: in the order in which they were judged.
        judge: figures of `UsageFigures` by name; without those that could not be read.
    """

    began: datetime
    outcome: NightOutcome
    verdict: str
    config_sha256: str | None
    revoked: str | None
    gates: tuple[KeptGate, ...]
    judge: Mapping[str, Any]


def parse_nights(content: bytes, name: str) -> list[KeptNight]:
    """The nights in a history's bytes, oldest first; what follows the last whole line is not one.

    Args:
        content: of the file.
        name: as refusals call it.

    Raises:
        RC1Error: when a whole line is no night.
    """
    nights = []
    for number, line in enumerate(content[: _whole(content)].splitlines(), 1):
        try:
            nights.append(_night(orjson.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RC1Error(
                f"{name}, line {number}: is not a night that RC1 wrote ({type(error).__name__}: {error}); "
                f"remove the line, or move the file away: the next night starts a new one"
            ) from None
    return sorted(nights, key=lambda night: night.began)


def _night(body: Mapping[str, Any]) -> KeptNight:
    began = datetime.fromisoformat(body["began"])
    if began.tzinfo is None:
        raise ValueError(f"began is {body['began']}, expected a time with its zone")
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
    """A verdict without advice, evidence and offenders: the reports have those."""
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
    """What the judge's stores logged of a night: their lines since its beginning, whoever asked meanwhile."""
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
    with _alone(place) as stream:
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
def _alone(place: Workspace) -> Iterator[IO[bytes]]:
    """The history, held: the kernel lets it go when the process ends, however it ends."""
    path = place.path(NIGHTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644), "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream


def _whole(content: bytes) -> int:
    """How far whole lines reach. A last line that lacks only its end, as an editor leaves it, is whole."""
    end = content.rfind(b"\n") + 1
    try:
        return len(content) if isinstance(orjson.loads(content[end:]), dict) else end
    except ValueError:
        return end
