"""`rc1 preflight` and `rc1 train` as one types them, killed at drawn moments and started again, until both have ended.

A moment is one of the lines that the program tells of its progress, and a while behind it, drawn from as long as it was
to the next line where nothing disturbed it. The lines also say in which stage a kill has hit.
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

from deployments import children
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.kills.ends import End, data, ending, foreign, holds

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
"""Command -> stage -> the line with which it begins; stages stand in their order."""
STAGES = {stage: command for command, signs in SIGNS.items() for stage in signs}
LONGEST_S = {"ticket": 1.0}
"""Of the stages behind whose work a server is waited for."""
LIMIT_S = 600.0
_TRIES = 5
_LINE = re.compile(
    r"^\[ *([\d.]+) s\] ((?:Prefect server|difficulty metrics|balanced pool|calibration|judge baseline|round \d|"
    r"warm start|train|evaluation): \d+/\d+(?: \d+ of)?)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Line:
    """A line that a command has told: when, in seconds from its first one, and in which stage."""

    text: str
    second: float
    stage: str


@dataclass(frozen=True)
class Kill:
    """One kill.

    Attributes:
        aimed: at which stage.
        hit: which stage had begun last.
        behind: the last line that was told.
        opened: whether a ticket held right after it.
        wrong: what was not as a kill may leave it, in words.
    """

    aimed: str
    hit: str
    behind: str
    opened: bool
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Undisturbed:
    """What came of a workspace in which nothing was killed.

    Attributes:
        end: what it holds.
        codes: how the commands ended.
        gaps: stage -> its lines, each with the seconds to the next one.
        start_s: command -> seconds until its server had started, which is the same work each time.
    """

    end: End
    codes: Mapping[str, int]
    gaps: Mapping[str, Sequence[tuple[str, float]]]
    start_s: Mapping[str, float]


@dataclass(frozen=True)
class Life:
    """One workspace, from nothing to its end.

    Attributes:
        root: of the workspace, in which the base lies.
        overrides: of its configuration.
        kills: that it has met.
    """

    root: Path
    overrides: Sequence[str]
    kills: list[Kill] = field(default_factory=list)

    @property
    def run(self) -> Run:
        """Its run, opened anew."""
        return open_run(profile="local", workspace=self.root, overrides=self.overrides)

    def start(self, command: str) -> Start:
        """Start a command as a shell does: in a process group of its own, knowing nothing of other servers."""
        flags = [part for override in self.overrides for part in ("--set", override)]
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "SCORER_"))}
        number = len(list(self.root.parent.glob(f"{self.root.name}.*.txt")))
        output = self.root.with_name(f"{self.root.name}.{number}.txt")
        program = [sys.executable, "-c", "from rc1_lib.cli import main; main()"]
        with output.open("wb") as told:
            process = subprocess.Popen(
                [*program, command, "--workspace", str(self.root), *flags], stdin=subprocess.DEVNULL, stdout=told,
                stderr=told, start_new_session=True, env={**bare, "PYTHONPATH": str(PROJECT_ROOT)},
            )  # fmt: skip
        return Start(command, process, output)

    def undisturbed(self) -> Undisturbed:
        """Let both commands run to their ends."""
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
        """Be killed once in each of these stages, which stand in their order, and then come to the end.

        Args:
            stages: to be killed in.
            like: what nothing disturbed.
            draw: the moments.

        Returns:
            What the end has otherwise than the undisturbed one: name -> both.
        """
        for command in SIGNS:
            for stage in stages:
                if STAGES[stage] == command:
                    self.kills.append(self._kill_in(stage, like, draw))
            last = self.start(command)
            assert last.wait() == like.codes[command], f"{command} has ended otherwise: {last.told()}"
        end = ending(self.run)
        names = sorted(like.end.keys() | end.keys())
        both = {name: (like.end.get(name), end.get(name)) for name in names}
        return {name: pair for name, pair in both.items() if pair[0] != pair[1]}

    def _kill_in(self, stage: str, like: Undisturbed, draw: random.Random) -> Kill:
        """Kill in a stage; a start that has come to its end before the moment does not count."""
        lines = like.gaps[stage]
        for _ in range(_TRIES):
            ((text, gap),) = draw.choices(lines, [gap for _, gap in lines])
            start = self.start(STAGES[stage])
            start.wait_for(text, stage)
            pace = start.lines()[0].second / like.start_s[start.command] if start.lines() else 1.0
            time.sleep(draw.uniform(0, gap * min(pace, 1.0)))
            if (hit := start.kill()) is not None:
                return Kill(stage, hit.stage, hit.text, *self._right_behind(like, hit.stage))
            assert start.wait() == like.codes[start.command], f"{start.command} has failed: {start.told()}"
        raise AssertionError(f"{_TRIES} starts have ended before they were killed in {stage}")

    def _right_behind(self, like: Undisturbed, hit: str) -> tuple[bool, tuple[str, ...]]:
        """Whether a ticket holds, and what is not as a kill may leave it."""
        run = self.run
        opened, wrong = holds(run), [f"{name} is taken for somebody else's" for name in foreign(run)]
        wrong += [
            f"{name} has other bytes" for name, sha256 in data(run).items() if like.end[f"file: {name}"] != sha256
        ]
        if (
            opened
            and hit in ("build", "calibration", "round 1", "round 2")
            and not any(one.opened for one in self.kills)
        ):
            wrong.append("a ticket holds that was not earned")
        return opened, tuple(wrong)


@dataclass(frozen=True)
class Start:
    """One start of a command, and where it writes what it tells."""

    command: str
    process: subprocess.Popen[bytes]
    output: Path

    def told(self) -> str:
        """All that it has told so far."""
        return self.output.read_text(errors="replace")

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(LIMIT_S)

    def lines(self) -> list[Line]:
        """What it has told of its progress since its server started, each line once."""
        found: dict[str, Line] = {}
        stage = ""
        for second, text in _LINE.findall(self.told()):
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
            assert time.monotonic() < deadline, f"never told: {text}; but {self.told()}"
            time.sleep(0.02)

    def kill(self) -> Line | None:
        """Kill its process group at once; gives the last line that it told, or None where it had ended by itself."""
        family = children.descendants(self.process.pid)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process.wait() != -signal.SIGKILL:
            return None
        deadline = time.monotonic() + LIMIT_S
        while left := [pid for pid in family if _running(pid)]:
            assert time.monotonic() < deadline, f"still running behind the kill: {left}"
            time.sleep(0.02)
        return self.lines()[-1]


def _running(pid: int) -> bool:
    """Whether a process is there that has not ended; one that has may wait for somebody to ask how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
