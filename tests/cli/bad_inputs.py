"""Bad input, and how to place it into an empty workspace."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rc1_lib.run import PUBLISHED
from rc1_lib.workspace.artifacts import PROJECT_ROOT

KEY = "sk-planted-4711"
"""A key that is given in the wrong place: no output may repeat it."""
LONG = "x" * 300
Make = Callable[[Path], object]


@dataclass(frozen=True)
class BadInput:
    """One kind of bad input.

    Attributes:
        kind: what is given.
        command: the command and its flags; `{w}` is the workspace.
        error: a part of the expected error message.
        make: writes the input into the workspace.
        environment: additional environment variables.
    """

    kind: str
    command: str
    error: str
    make: Make = lambda root: None
    environment: Mapping[str, str] = field(default_factory=dict)

    def words(self, workspace: Path) -> list[str]:
        """The command line, in this workspace."""
        words = [word.replace("{w}", str(workspace)) for word in self.command.split(" ")]
        return words if "--workspace" in words else [*words, "--workspace", str(workspace)]


def _at(root: Path, name: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def file(name: str, content: str | bytes = b"") -> Make:
    """A file of this content."""
    body = content if isinstance(content, bytes) else content.encode()
    return lambda root: _at(root, name).write_bytes(body)


def both(first: Make, second: Make) -> Make:
    """Both, in this order."""
    return lambda root: (first(root), second(root))


def pipe(name: str) -> Make:
    """A pipe without a writer."""
    return lambda root: os.mkfifo(_at(root, name))


def folder(name: str) -> Make:
    """An empty folder."""
    return lambda root: (root / name).mkdir(parents=True)


def link(name: str, target: str) -> Make:
    """A link."""
    return lambda root: _at(root, name).symlink_to(target)


def config(text: str) -> Make:
    """A custom configuration, `{w}/mine.yaml`."""
    return file("mine.yaml", text)


def local(old: str, new: str) -> Make:
    """The shipped local configuration with a part replaced, next to the published one that it extends."""

    def make(root: Path) -> None:
        shutil.copyfile(PROJECT_ROOT / PUBLISHED, root / Path(PUBLISHED).name)
        text = (PROJECT_ROOT / "configs/local.yaml").read_text(encoding="utf-8")
        (root / "mine.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")

    return make


def message(**more: object) -> dict[str, object]:
    return {"role": "assistant", "content": "Paris", **more}


def dialogue(*messages: object) -> Make:
    """A file `{w}/rows.jsonl` with one line of messages."""
    return file("rows.jsonl", json.dumps({"messages": messages}) + "\n")


TICKET = "reports/preflight/ticket.json"
_TICKET = {
    "version": 1, "profile": "local", "issued": "2026-01-01T00:00:00+00:00", "expires": "2026-01-02T00:00:00+00:00",
    "commit": None, "files": {}, "reports": {}, "judge": {"provider": "rubric", "spec": "v1"}, "waived": {},
    "not_applicable": {},
    "foreign_gates": {},
    "config": {}, "ticket_sha256": None, "revoked": None,
}  # fmt: skip


def ticket(**change: object) -> Make:
    """A well-formed ticket except for these fields."""
    return file(TICKET, json.dumps({**_TICKET, **change}))
