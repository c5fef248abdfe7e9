"""The history of nightly runs: one line of JSON per night, however it ended, oldest first.

A line is appended under a lock, in one write, and synced. A partial last line, left by a kill or a full disk, is not a
night: the next night truncates it. RC1 never removes a whole line.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import IO, Any, Self

import orjson

from rc1_lib.errors import RC1Error
from rc1_lib.masking import conceal_tree, secrets
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import Workspace

NIGHTS = "reports/preflight/nights.jsonl"


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
        run: the run that was judged; None if the configuration was rejected.
        ticket_sha256: digest of the ticket that was valid when the night began; None if none was.
        began: its start, in seconds since 1970.
        verdict: its outcome in a sentence.
        rounds: round -> the gates' verdicts.
    """

    id: str
    place: Workspace
    run: Run | None = None
    ticket_sha256: str | None = None
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
            "ticket_sha256": self.ticket_sha256,
            "gates": {name: {one.name: _brief(one) for one in results} for name, results in self.rounds.items()},
        }


def latest_night(run: Run) -> dict[str, Any] | None:
    """Return the latest recorded night with the settings of a run, or None.

    Raises:
        RC1Error: when the history cannot be read.
    """
    path = run.workspace.path(NIGHTS)
    try:
        nights = [orjson.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        ours = [night for night in nights if night["config_sha256"] == run.config_sha256]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RC1Error(f"{path}: cannot be read as the history of nightlies ({error}); move it away") from None
    return ours[-1] if ours else None


def _brief(result: GateResult) -> dict[str, Any]:
    """Return a verdict with the values that decided it; the rest is in the Prefect UI and the latest report."""
    figures = {check.name: check.to_dict()["value"] for check in result.checks if check.op != "info"}
    return {"status": result.status.value, "figures": figures}


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
