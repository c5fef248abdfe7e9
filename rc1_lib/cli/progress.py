"""Progress of a long command: bars on a terminal, one line per finished part elsewhere (a log file, CI)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from rc1_lib.cli.streams import terminal
from rc1_lib.runtime.libraries import quieten
from rc1_lib.runtime.progress import PASSING_NOTES, REPEATED, listening

if TYPE_CHECKING:
    from rc1_lib.run import Run

_BAR_WIDTH = 12
_EVERY_S = 10.0
"""Shortest time between two lines of the same counting stage where there is no terminal."""


@contextmanager
def stages() -> Iterator[None]:
    """Show on stderr how far each stage is, while the block lasts."""
    if not terminal().isatty():
        with listening(_Lines().report):
            yield
        return
    # In a narrow terminal the note gives way: its length is not known before.
    note = TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True)), BarColumn(bar_width=_BAR_WIDTH),
        MofNCompleteColumn(), TimeElapsedColumn(), note,
    )  # fmt: skip
    ids: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int, note: str) -> None:
        if stage not in ids:
            ids[stage] = bars.add_task(stage, total=total, note=note)
        bars.update(ids[stage], completed=done, total=total, note=note)

    with Progress(*columns, console=Console(file=terminal()), expand=True) as bars, listening(report):
        yield


class _Lines:
    """A line for every note, and for the bare counts now and then; the end of a stage is reported once."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.shown: dict[str, float] = {}
        self.ended: dict[str, int] = {}

    def report(self, stage: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        passing = stage in PASSING_NOTES
        if passing and done == total and self.ended.get(stage) == total:
            return
        self.ended[stage] = total if done == total else -1
        ended = done == total and stage not in REPEATED
        if (note and not passing) or ended or now - self.shown.get(stage, 0.0) >= _EVERY_S:
            self.shown[stage] = now
            print(f"[{now - self.begun:6.1f} s] {stage}: {done}/{total} {note}".rstrip(), file=sys.stderr, flush=True)


def quieten_models(run: Run) -> None:
    """Silence the notices of the model libraries; progress bars stay where the base has to be downloaded."""
    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
