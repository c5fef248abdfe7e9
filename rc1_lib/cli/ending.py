"""The last lines of a command: verdict, what failed and why, what to do, where to read on, and the next command."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rc1_lib.cli.session import WIDTH, Session
from rc1_lib.cli.tables import figure, wanted

MOST = 5
"""Lines of an ending."""
_FAILURES = 3
_FAILED = ("failed", "error")
_CUT = " ..."


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed.

    Attributes:
        what: and why, as a sentence.
        advice: what to do; "" where nobody can say.
    """

    what: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended.

    Attributes:
        verdict: pass or fail of what judges, done of what only builds, fault where the program or the machine failed.
        words: what that is about.
        failures: of a fail, the most important one first.
        report: the file to read on in, if there is one.
        following: the last line, with the next command; "" where there is none.
    """

    verdict: Literal["pass", "fail", "done", "fault"]
    words: str
    failures: Sequence[Failure] = ()
    report: Path | None = None
    following: str = ""

    def lines(self) -> list[str]:
        """At most `MOST` of them; sentences are cut to the width of a page, paths and commands never."""
        advice = self.failures[0].advice if self.failures else ""
        tail = [
            *([_fitted("what to do: ", advice)] if advice else []),
            *([f"report: {self.report}"] if self.report else []),
            *([self.following] if self.following else []),
        ]
        return [_fitted(f"{self.verdict}: ", self.words), *self._failed(MOST - 1 - len(tail)), *tail]

    def _failed(self, room: int) -> list[str]:
        """What failed, a line each, as far as there is room; the last line says how much more there is."""
        shown = self.failures[: min(room, _FAILURES)]
        left = len(self.failures) - len(shown)
        lines = [_fitted("  ", failure.what) for failure in shown]
        if left and lines:
            more = f"; {left} more above"
            lines[-1] = _fitted("  ", shown[-1].what, room=len(more)) + more
        return lines


def show_ending(session: Session, ending: Ending) -> None:
    """Print the last lines of a command."""
    session.show(*ending.lines())


def judged(
    what: str, gates: Sequence[Mapping[str, Any]], report: Path | None, *, after_pass: str = "", after_fail: str = ""
) -> Ending:
    """How a command ended that judged some gates.

    Args:
        what: was judged.
        gates: as reports have them.
        report: their report.
        after_pass: the last line where all passed.
        after_fail: the last line where one failed.
    """
    failed = [gate for gate in gates if gate["status"] in _FAILED]
    passed = sum(gate["status"] == "passed" for gate in gates)
    others = [(status, sum(gate["status"] == status for gate in gates)) for status in ("waived", "not applicable")]
    if failed:
        names = ", ".join(gate["name"] for gate in failed)
        words = f"{what}, {len(failed)} of {len(gates)} gates: {names}" if len(gates) > 1 else what
        return Ending("fail", words, tuple(map(failure_of, failed)), report, after_fail)
    counted = ", ".join([f"{passed} passed", *(f"{count} {status}" for status, count in others if count)])
    words = f"{what}, {len(gates)} gates: {counted}" if len(gates) > 1 or not passed else what
    return Ending("pass", words, (), report, after_pass)


def failure_of(gate: Mapping[str, Any]) -> Failure:
    """Why a gate failed: its error, or the first of its checks that failed, with the advice to that."""
    if gate["error"]:
        return Failure(f"{gate['name']}: {gate['error']}")
    check = next(check for check in gate["checks"] if not check["passed"])
    what = f"{gate['name']}: {check['name']} is {figure(check['value'])}, wanted {wanted(check)}"
    return Failure(what, check["advice"])


def _fitted(start: str, words: str, room: int = 0) -> str:
    """One line of at most `WIDTH` columns, `room` of them left free."""
    whole = " ".join(words.split())
    width = WIDTH - len(start) - room
    if len(whole) <= width:
        return start + whole
    cut = textwrap.shorten(whole, width, placeholder=_CUT)
    return start + (cut if cut != _CUT.strip() else whole[: width - len(_CUT)] + _CUT)
