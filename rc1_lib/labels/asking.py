"""Asks a person for labels, one dialogue at a time: blind, one key per verdict, each saved before the next dialogue.

The person sees only messages: no score, no other label, and no name that might reveal more about the dialogue.
"""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import orjson

from rc1_lib.judge.prompt import canonical, dialogue_sha256
from rc1_lib.labels.label_file import read_labels
from rc1_lib.records import Message
from rc1_lib.workspace.artifacts import atomic_write, now

_WAIT_S = 0.25
Keyboard = Callable[[], str]
"""The next non-blank key; an empty text at the end of the input."""


@contextmanager
def keyboard(stream: TextIO) -> Iterator[Keyboard]:
    """Read keys from a stream; at the end of the block a terminal is restored, however the block ends."""
    if not stream.isatty():
        yield lambda: _next(lambda: stream.read(1))
        return
    import termios
    import tty

    terminal = stream.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        yield lambda: _next(lambda: _next_key(terminal))
    finally:
        # At once: waiting for the output would hang if nobody reads it any more.
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _next_key(terminal: int) -> str:
    # Ctrl-C ends a wait at once, but a read continues if a library's signal handler restarts system calls (polars).
    # A Ctrl-C just before a wait does not end it, so waits are kept short.
    while not select.select([terminal], [], [], _WAIT_S)[0]:
        pass
    return os.read(terminal, 1).decode("ascii", "replace")


def _next(read: Callable[[], str]) -> str:
    while (key := read()) and key.isspace():
        pass
    return "" if key == "\x04" else key.lower()


VERDICTS = {"g": True, "b": False}
SKIP, UNDO, QUIT = "s", "u", "q"
HELP = "g good, b bad, s skip, u undo the last one, q quit"


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """One dialogue to label.

    Attributes:
        messages: in chat format.
        group: names dialogues that are not independent of it; None if there are none.
        bucket: its difficulty, or another part to report separately.
    """

    messages: Sequence[Message]
    group: str | None = None
    bucket: str | None = None


@dataclass(slots=True)
class Labels:
    """The label file that is written; existing lines stay unchanged and in order.

    Attributes:
        path: the file.
        annotator: whose labels these are.
    """

    path: Path
    annotator: str
    _lines: list[bytes] = field(default_factory=list)
    _own: dict[str, int] = field(default_factory=dict)
    """Dialogue -> the place of this person's line."""

    def load(self) -> None:
        """Read the existing file.

        Raises:
            RowError: when it is not a label file.
        """
        if not self.path.exists():
            return
        found = read_labels(self.path, needed=False).rows
        lines = [line for line in self.path.read_bytes().split(b"\n") if line.strip()]
        self._lines = lines
        for place, row in enumerate(found.iter_rows(named=True)):
            if row["annotator"] == self.annotator and row["label"] is not None:
                self._own[row["dialogue"]] = place

    def __len__(self) -> int:
        return len(self._own)

    def holds(self, dialogue: str) -> bool:
        """Whether this person has labelled it."""
        return dialogue in self._own

    def add(self, dialogue: str, shown: Unlabelled, verdict: bool) -> None:
        """Save a verdict; it is on disk when this returns."""
        record: dict[str, Any] = {
            "label": verdict,
            "annotator": self.annotator,
            "time": now(),
            "group": shown.group,
            "bucket": shown.bucket,
            "messages": list(shown.messages),
        }
        self._own[dialogue] = len(self._lines)
        self._lines.append(orjson.dumps({key: value for key, value in record.items() if value is not None}))
        self._write()

    def take_back(self, dialogue: str) -> None:
        """Remove this person's verdict."""
        place = self._own.pop(dialogue)
        del self._lines[place]
        self._own = {name: at - (at > place) for name, at in self._own.items()}
        self._write()

    def _write(self) -> None:
        with atomic_write(self.path) as stream:
            stream.writelines(line + b"\n" for line in self._lines)


def drawn(dialogues: Iterable[Unlabelled], seed: int) -> dict[str, Unlabelled]:
    """Return the dialogues by fingerprint in random order, each once; the same seed gives the same order."""
    found = {dialogue_sha256(dialogue.messages): dialogue for dialogue in dialogues}
    names = list(found)
    random.Random(seed).shuffle(names)
    return {name: found[name] for name in names}


def ask(
    dialogues: dict[str, Unlabelled], labels: Labels, wanted: int, keyboard: Keyboard, show: Callable[[str], None]
) -> int:
    """Ask for verdicts until the person has given as many as wanted, or quits.

    Args:
        dialogues: by fingerprint, in the order in which to ask.
        labels: the existing labels, to which verdicts are added.
        wanted: total number of labels of this person.
        keyboard: the source of keys.
        show: shows texts.

    Returns:
        How many this person has labelled now.
    """
    queue = [name for name in dialogues if not labels.holds(name)]
    place, given = 0, list[tuple[int, str]]()
    while place < len(queue) and len(labels) < wanted:
        name = queue[place]
        show(f"\n──── {len(labels) + 1} of {wanted} ────\n{as_text(dialogues[name].messages)}\n\n{HELP}")
        key = keyboard()
        while key not in {*VERDICTS, SKIP, UNDO, QUIT, ""}:
            show(f"unknown key '{key}': {HELP}")
            key = keyboard()
        if key in (QUIT, ""):
            break
        if key == UNDO:
            if not given:
                show("there is no verdict of this session to undo")
                continue
            place, last = given.pop()
            labels.take_back(last)
            continue
        if key in VERDICTS:
            labels.add(name, dialogues[name], VERDICTS[key])
            given.append((place, name))
        place += 1
    return len(labels)


def as_text(messages: Sequence[Message]) -> str:
    """Format a dialogue for a human reader: speakers and texts, with calls as `tool(arguments)`."""
    parts = []
    for message in canonical(messages):
        calls = [f"{call['name']}({call['arguments']})" for call in message.get("tool_calls", ())]
        parts.append("\n".join([f"[{message['role']}]", *filter(None, [message["content"]]), *calls]))
    return "\n\n".join(parts)
