"""Input that no command can use, and the workspaces that it lies in: empty but for what `make` puts there."""

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
"""A key that is given where none belongs: nothing may repeat it."""
LONG = "x" * 300
Make = Callable[[Path], object]


@dataclass(frozen=True)
class BadInput:
    """One kind.

    Attributes:
        kind: what is given, as the page calls it.
        command: the command and its flags; `{w}` stands for the workspace.
        said: a part of the sentence that refuses it.
        make: what lies in the workspace beforehand.
        environment: beside the usual one.
    """

    kind: str
    command: str
    said: str
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
    """One after the other."""
    return lambda root: (first(root), second(root))


def pipe(name: str) -> Make:
    """A pipe that nobody writes into."""
    return lambda root: os.mkfifo(_at(root, name))


def folder(name: str) -> Make:
    """An empty folder."""
    return lambda root: (root / name).mkdir(parents=True)


def link(name: str, target: str) -> Make:
    """A link."""
    return lambda root: _at(root, name).symlink_to(target)


def large(name: str) -> Make:
    """A file of 200 MB without a byte on the disk."""

    def make(root: Path) -> None:
        with _at(root, name).open("wb") as stream:
            stream.truncate(200_000_000)

    return make


def config(text: str) -> Make:
    """A configuration of its own, `{w}/mine.yaml`."""
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
    "config": {}, "ticket_sha256": None, "revoked": None,
}  # fmt: skip


def ticket(**change: object) -> Make:
    """A ticket that is whole in form but for this."""
    return file(TICKET, json.dumps({**_TICKET, **change}))
