"""`rc1 preflight` and `rc1 train`, killed at random moments and restarted until both complete.

A moment is a random time after one of the program's progress lines, up to the time of the next line in an undisturbed
run. The lines also say in which stage a kill happened.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.kills.ends import End, data, ending, foreign, holds
from tests.prefect_server import still_running

PREFLIGHT, TRAIN = "preflight", "train"
BEGUN = "Prefect server: 1/1"
SIGNS: Mapping[str, Mapping[str, str]] = {
    PREFLIGHT: {
        "build": BEGUN,
        "calibration": "calibration: 0/",
        "round 1": "judge baseline: 1/1|round 1: ",
        "round 2": r"round 1: \d+/\d+ \d+ of",
        "ticket": r"round 2: \d+/\d+ \d+ of",
    },
    TRAIN: {"warm start": BEGUN, "training": "train: ", "evaluation": "evaluation: "},
}
"""Command -> stage -> its first line; stages are in order."""
STAGES = {stage: command for command, signs in SIGNS.items() for stage in signs}
LONGEST_S = {"ticket": 1.0}
"""Limits for stages that end with waiting for a server."""
LIMIT_S = 600.0
_TRIES = 5
_LINE = re.compile(
    r"^\[ *([\d.]+) s\] ((?:Prefect server|difficulty metrics|balanced pool|calibration|judge baseline|round \d|"
    r"warm start|train|evaluation): \d+/\d+(?: \d+ of)?)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Line:
    """A progress line: its text, seconds since the first line, and stage."""

    text: str
    second: float
    stage: str


@dataclass(frozen=True)
class Kill:
    """One kill.

    Attributes:
        aimed: the stage that it was planned for.
        hit: the last stage that had begun.
        before: the last progress line before it.
        opened: whether a ticket was valid right after it.
        wrong: invalid states right after it.
    """

    aimed: str
    hit: str
    before: str
    opened: bool
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Undisturbed:
    """The results of an undisturbed workspace.

    Attributes:
        end: its contents.
        codes: the commands' exit codes.
        gaps: stage -> its lines with the seconds to the next one.
        start_s: command -> seconds until its server started, the same work each time.
    """

    end: End
    codes: Mapping[str, int]
    gaps: Mapping[str, Sequence[tuple[str, float]]]
    start_s: Mapping[str, float]


@dataclass(frozen=True)
class Life:
    """One workspace, from empty to complete.

    Attributes:
        root: the workspace, which has the base.
        overrides: settings of its configuration.
        kills: the kills so far.
    """

    root: Path
    overrides: Sequence[str]
    kills: list[Kill] = field(default_factory=list)

    @property
    def run(self) -> Run:
        """Its run, reopened."""
        return open_run(profile="local", workspace=self.root, overrides=self.overrides)

    def start(self, command: str) -> Start:
        """Start a command as a shell does, in its own process group, without settings of other servers."""
        flags = [part for override in self.overrides for part in ("--set", override)]
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "SCORER_"))}
        number = len(list(self.root.parent.glob(f"{self.root.name}.*.txt")))
        output = self.root.with_name(f"{self.root.name}.{number}.txt")
        program = [sys.executable, "-c", "from rc1_lib.cli import main; main()"]
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [*program, command, "--workspace", str(self.root), *flags], stdin=subprocess.DEVNULL, stdout=stream,
                stderr=stream, start_new_session=True, env={**bare, "PYTHONPATH": str(PROJECT_ROOT)},
            )  # fmt: skip
        return Start(command, process, output)

    def undisturbed(self) -> Undisturbed:
        """Run both commands to completion."""
        codes: dict[str, int] = {}
        gaps: dict[str, list[tuple[str, float]]] = {stage: [] for stage in STAGES}
        start_s: dict[str, float] = {}
        for command in SIGNS:
            began = time.monotonic()
            start = self.start(command)
            codes[command] = start.wait()
            lines, took = start.lines(), time.monotonic() - began
            start_s[command] = lines[0].second
            for line, after in zip(lines, [*(line.second for line in lines[1:]), took], strict=True):
                gap = min(after - line.second, LONGEST_S.get(line.stage, after))
                gaps[line.stage].append((line.text, gap))
        return Undisturbed(ending(self.run), codes, gaps, start_s)

    def meet(self, stages: Sequence[str], like: Undisturbed, draw: random.Random) -> dict[str, tuple[object, object]]:
        """Run with one kill in each of these stages, given in order, and then to completion.

        Args:
            stages: the stages of the kills.
            like: the undisturbed workspace.
            draw: the random generator of the moments.

        Returns:
            The differences from the undisturbed contents: name -> both values.
        """
        for command in SIGNS:
            for stage in stages:
                if STAGES[stage] == command:
                    self.kills.append(self._kill_in(stage, like, draw))
            last = self.start(command)
            assert last.wait() == like.codes[command], f"{command} has another exit code: {last.text()}"
        end = ending(self.run)
        names = sorted(like.end.keys() | end.keys())
        both = {name: (like.end.get(name), end.get(name)) for name in names}
        return {name: pair for name, pair in both.items() if pair[0] != pair[1]}

    def _kill_in(self, stage: str, like: Undisturbed, draw: random.Random) -> Kill:
        """Kill in a stage; a command that ended before the moment does not count."""
        lines = like.gaps[stage]
        for _ in range(_TRIES):
            ((text, gap),) = draw.choices(lines, [gap for _, gap in lines])
            start = self.start(STAGES[stage])
            start.wait_for(text, stage)
            pace = start.lines()[0].second / like.start_s[start.command] if start.lines() else 1.0
            time.sleep(draw.uniform(0, gap * min(pace, 1.0)))
            if (hit := start.kill()) is not None:
                return Kill(stage, hit.stage, hit.text, *self._right_after(like, hit.stage))
            assert start.wait() == like.codes[start.command], f"{start.command} has failed: {start.text()}"
        raise AssertionError(f"{_TRIES} commands ended before the kill in {stage}")

    def _right_after(self, like: Undisturbed, hit: str) -> tuple[bool, tuple[str, ...]]:
        """Whether a ticket is valid, and invalid states after the kill."""
        run = self.run
        opened, wrong = holds(run), [f"{name} is treated as foreign" for name in foreign(run)]
        wrong += [
            f"{name} has other bytes" for name, sha256 in data(run).items() if like.end[f"file: {name}"] != sha256
        ]
        if (
            opened
            and hit in ("build", "calibration", "round 1", "round 2")
            and not any(one.opened for one in self.kills)
        ):
            wrong.append("a ticket is valid that was not earned")
        return opened, tuple(wrong)


@dataclass(frozen=True)
class Start:
    """One start of a command, and the file with its output."""

    command: str
    process: subprocess.Popen[bytes]
    output: Path

    def text(self) -> str:
        """Its output so far."""
        return self.output.read_text(errors="replace")

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(LIMIT_S)

    def lines(self) -> list[Line]:
        """Its progress lines since its server started, each once."""
        found: dict[str, Line] = {}
        stage = ""
        for second, text in _LINE.findall(self.text()):
            begun = [name for name, sign in SIGNS[self.command].items() if re.match(sign, text)]
            stage = begun[-1] if begun else stage
            if stage:
                found.setdefault(text, Line(text, float(second), stage))
        return list(found.values())

    def wait_for(self, text: str, stage: str) -> None:
        """Wait for a line of a stage, for the first one of a later stage, or for the end."""
        later = list(SIGNS[self.command])[list(SIGNS[self.command]).index(stage) + 1 :]
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None and not any(
            line.text == text or line.stage in later for line in self.lines()
        ):
            assert time.monotonic() < deadline, f"missing line: {text}; output: {self.text()}"
            time.sleep(0.02)

    def kill(self) -> Line | None:
        """Kill its process group; returns its last progress line, or None if it had already ended."""
        family: list[psutil.Process] = []
        if self.process.poll() is None:
            family = psutil.Process(self.process.pid).children(recursive=True)
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process.wait() != -signal.SIGKILL:
            return None
        deadline = time.monotonic() + LIMIT_S
        while left := [one for one in family if still_running(one)]:
            assert time.monotonic() < deadline, f"still running after the kill: {left}"
            time.sleep(0.02)
        return self.lines()[-1]
