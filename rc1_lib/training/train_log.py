"""`logs/train.log`: what happened when, in lines for people."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.masking import conceal, secrets
from rc1_lib.workspace.artifacts import now


class TrainLog:
    """Appends lines with the time in UTC, without secrets."""

    def __init__(self, path: Path) -> None:
        """Write to `path`; its folder is made if need be."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._hidden = path, secrets()

    def line(self, text: str) -> None:
        """Add a line."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"{now()} {conceal(text, self._hidden)}\n")
