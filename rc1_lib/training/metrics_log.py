"""`reports/metrics.jsonl`: one line for every step, also when the run was killed and resumed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.errors import RowError
from rc1_lib.workspace.artifacts import atomic_write

SECONDS = "sec_per_step"
NAMED = ("step", "loss", "kl", "ratio", "lr", "mem_used_mb", SECONDS)
"""Fields that every line has; one that means nothing for an engine (kl of supervised learning) is null."""


class MetricsLog:
    """Appends lines and forgets those that a resumed run will write again."""

    def __init__(self, path: Path) -> None:
        """Write to `path`; its folder is made with the first line."""
        self.path = path

    def append(self, step: int, metrics: Mapping[str, float | None]) -> None:
        """Add the line of a step. It is on the disk when this returns, so that no later checkpoint can outlive it."""
        line = {**dict.fromkeys(NAMED), "step": step, **metrics}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            stream.write(orjson.dumps(line) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def truncate(self, step: int) -> int:
        """Drop, in one rename, all lines of later steps and a line that a kill tore.

        Returns:
            The step of the last line that is left; 0 when none is.

        Raises:
            RowError: when a whole line is no JSON object with a step.
        """
        if not self.path.exists():
            return 0
        content = self.path.read_bytes()
        kept = [line for line in self._whole(content) if self._step(line) <= step]
        if b"".join(kept) != content:
            with atomic_write(self.path) as stream:
                stream.writelines(kept)
        return self._step(kept[-1]) if kept else 0

    def read(self) -> list[dict[str, Any]]:
        """All whole lines, oldest first."""
        return [orjson.loads(line) for line in self._whole(self.path.read_bytes())] if self.path.exists() else []

    @staticmethod
    def _whole(content: bytes) -> list[bytes]:
        return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)

    def _step(self, line: bytes) -> int:
        try:
            return int(orjson.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            raise RowError(
                f"{self.path}: the line {line[:60]!r} is no metrics of a step; move the file away, a new one is begun"
            ) from None
