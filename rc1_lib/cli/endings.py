"""The last lines of a command: verdict; after a failure also what to do, and the next command, ready to type."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rc1_lib.check_words import check_line
from rc1_lib.cli.session import VERIFIED, WIDTH, Session
from rc1_lib.cli.streams import typed
from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.records import Check
from rc1_lib.runtime.libraries import lacking_for_training

if TYPE_CHECKING:
    from rc1_lib.run import Run

MOST = 5
"""Lines of an ending, at most."""
_FAILURES = 3
FAILED = ("failed", "error")
"""The statuses of a gate that failed."""
_CUT = " ..."
_CODES = {"pass": 0, "done": 0, "fail": 2, "fault": 1}
_OPENING = ("build-pool", "preflight", "round1", "round2", "calibrate")
"""Commands that do not open a run by what the workspace has recorded."""
_FEW = 2
"""Settings that a command line lists one by one, at most."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed and why, as a sentence, and what to do, or "" if that is unknown."""

    what: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended.

    Attributes:
        verdict: pass or fail for a command that judges, done for one that builds, fault if program or machine failed.
        words: what the verdict is about.
        failures: what failed, the most important first.
        report: the file with details, if there is one.
        following: after a failure the last line, with the next command; else "".
    """

    verdict: Literal["pass", "fail", "done", "fault"]
    words: str
    failures: Sequence[Failure] = ()
    report: Path | None = None
    following: str = ""

    def lines(self) -> list[str]:
        """Return at most `MOST` lines, with sentences cut to `WIDTH`, but not advice, paths and commands."""
        advice = self.failures[0].advice if self.failures else ""
        tail = [
            f"what to do: {' '.join(advice.split())}" if advice else "",
            f"report: {self.report}" if self.report else "",
            self.following,
        ]
        tail = [line for line in tail if line]
        shown = self.failures[: min(MOST - 1 - len(tail), _FAILURES)]
        failed = [_fitted("  ", failure.what) for failure in shown]
        if failed and (left := len(self.failures) - len(shown)):
            more = f"; {left} more above"
            failed[-1] = _fitted("  ", shown[-1].what, room=len(more)) + more
        return [_fitted(f"{self.verdict}: ", self.words), *failed, *tail]


def end(session: Session, ending: Ending, document: Any, code: int | None = None) -> int:
    """Print the last lines and, with --json, the document; return `code`, by default the verdict's."""
    session.show(*ending.lines())
    session.document(document)
    return _CODES[ending.verdict] if code is None else code


def judged(what: str, gates: Sequence[Mapping[str, Any]], report: Path | None, *, after_fail: str = "") -> Ending:
    """Return the ending of a command that judged `what`; `gates` are in the form of a report."""
    failed = [gate for gate in gates if gate["status"] in FAILED]
    passed = sum(gate["status"] == "passed" for gate in gates)
    others = [(status, sum(gate["status"] == status for gate in gates)) for status in ("waived", "not applicable")]
    if failed:
        names = ", ".join(gate["name"] for gate in failed)
        words = f"{what}, {len(failed)} of {len(gates)} gates: {names}" if len(gates) > 1 else what
        return Ending("fail", words, tuple(map(failure_of, failed)), report, after_fail)
    counted = ", ".join([f"{passed} passed", *(f"{count} {status}" for status, count in others if count)])
    words = f"{what}, {len(gates)} gates: {counted}" if len(gates) > 1 or not passed else what
    return Ending("pass", words, (), report)


def failure_of(gate: Mapping[str, Any]) -> Failure:
    """Return why a gate failed: its error, or its first failed check with that check's advice."""
    if gate["error"]:
        return Failure(f"{gate['name']}: {gate['error']}")
    check = next(check for check in map(Check.from_dict, gate["checks"]) if not check.passed)
    return Failure(f"{gate['name']}: {check_line(check)}", check.advice)


def _fitted(start: str, words: str, room: int = 0) -> str:
    """Cut a line to `WIDTH` columns, of which `room` stay free."""
    whole = " ".join(words.split())
    width = WIDTH - len(start) - room
    if len(whole) <= width:
        return start + whole
    cut = textwrap.shorten(whole, width, placeholder=_CUT)
    return start + (cut if cut != _CUT.strip() else whole[: width - len(_CUT)] + _CUT)


def warned(session: Session, run: Run, ending: Ending) -> Ending:
    """Add a warning to a ticket's ending if its pool is clearly too small, and name a command that works."""
    if lacking_for_training():
        return ending
    from rc1_lib.forecast.too_few import shortages

    empty, few = shortages(run)
    if empty:
        failures = [Failure(f"training will reject this pool: {empty}", "raise pool.n, or training.max_tokens")]
        return replace(ending, failures=failures, following=then(session, "preflight", when="with other settings"))
    if few:
        failures = [Failure(few, "raise pool.n or training.max_tokens, or train without the evaluation")]
        return replace(ending, failures=failures, following=then(session, "train", "--no-evaluate"))
    return ending


def after_refusal(session: Session, error: RC1Error) -> str:
    """Return the line that names the next command after an error: a preflight for a ticket, or else the same command.

    It is "" if the configuration or a flag is at fault.
    """
    if session.run is None or isinstance(error, ConfigError):
        return ""
    if isinstance(error, TicketError):
        return _for_ticket(session, session.run)
    return f"next, once that is fixed: {typed()}"


def _for_ticket(session: Session, run: Run) -> str:
    """Return a preflight as the next command, or `ticket verify` if the ticket belongs to other, recorded settings."""
    from rc1_lib.preflight.ticket import read_ticket

    try:
        issued = read_ticket(run).get("config_sha256")
        recorded = _reopened(run)
    except RC1Error:
        return then(session, "preflight", when="for a ticket")
    if issued == run.config_sha256 or recorded.config_sha256 != issued:
        return then(session, "preflight", when="for a ticket")
    named = {"--workspace": session.options.workspace}
    return f"next, with the ticket's own settings: {shlex.join(['rc1', 'ticket', 'verify', *flagged(named)])}"


def then(session: Session, name: str, *flags: str, when: str = "") -> str:
    """Return the last line after a failure: another command, and if that is not obvious, when or what for."""
    return f"next{f', {when}' if when else ''}: {command_line(session, name, *flags)}"


def again(session: Session, name: str, *flags: str, when: str = "once that is fixed") -> str:
    """Return the last line of a failed command: the same one, with all settings and with `flags`."""
    return f"next, {when}: {command_line(session, name, *flags, gates=True)}"


def flagged(given: Mapping[str, object]) -> list[str]:
    """Return flags that were given as words: `{"--task": "gsm8k", "--golds": None}` -> `--task gsm8k`.

    The key "" is for a positional argument.
    """
    return [word for flag, value in given.items() if value is not None for word in (flag, str(value)) if word]


def command_line(session: Session, name: str, *flags: str, gates: bool = False) -> str:
    """Return another command for the same run, ready to type: same workspace, configuration and settings.

    A few settings are listed. If there are more, the command names the run's effective configuration, provided that it
    records them. With `gates` it also keeps settings of gates that came from this command's own flags.
    """
    options = session.options
    own = session.overrides[len(session.common) :]
    settings = (*session.common, *(one for one in own if gates or not one.startswith("gates.")))
    short: dict[str, tuple[str, str]] = {}
    if options.reward is not None:
        short |= dict.fromkeys(VERIFIED, ("--reward", options.reward))
    if options.sources is not None:
        short |= {one: ("--sources", options.sources) for one in settings if one.startswith("sources.use=")}
    pairs = dict.fromkeys(short.get(setting, ("--set", setting)) for setting in settings)
    config = _opened_by(session) if options.config is None and name in _OPENING else options.config
    named = {"--profile": options.profile, "--config": config, "--workspace": options.workspace}
    many = sum(flag == "--set" for flag, _ in pairs) > _FEW and settings == session.overrides
    if many and (recorded := _recorded(session)) is not None:
        named, pairs = {"--config": recorded, "--workspace": options.workspace}, {}
    return shlex.join(["rc1", *name.split(), *flags, *flagged(named), *(word for pair in pairs for word in pair)])


def _opened_by(session: Session) -> Path | None:
    """Return the workspace's record if it opened the run, and the command's options alone would open another one."""
    from rc1_lib.run import open_run

    options, run = session.options, session.run
    if run is None or session.recorded is None:
        return None
    try:
        plain = open_run(profile=options.profile, overrides=session.overrides, workspace=options.workspace)
    except ConfigError:
        return _recorded_at(run)
    return _recorded_at(run) if plain.config != run.config else None


def _recorded(session: Session) -> Path | None:
    """Return the effective configuration's path, relative to the current folder, if it reopens the same run."""
    run = session.run
    if run is None:
        return None
    try:
        there = _reopened(run)
    except ConfigError:
        return None
    if (there.config_path, there.overrides, there.config) != (run.config_path, run.overrides, run.config):
        return None
    return _recorded_at(run)


def _reopened(run: Run) -> Run:
    """Open the run that the workspace's effective configuration records."""
    from rc1_lib.run import EFFECTIVE, open_run

    return open_run(config=run.workspace.path(EFFECTIVE), workspace=run.workspace.root)


def _recorded_at(run: Run) -> Path:
    """Return the path of the effective configuration, relative to the current folder if it is below it."""
    from rc1_lib.run import EFFECTIVE

    path, here = run.workspace.path(EFFECTIVE), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
