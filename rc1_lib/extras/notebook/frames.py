"""Use rows in memory instead of a run's own files, for gates in a notebook."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.rows.schema import check_rows
from rc1_lib.run import Run


@dataclass(frozen=True, slots=True)
class FrameEvidence(Evidence):
    """A run's files, some of them replaced by frames; see `held`."""

    frames: Mapping[str, pl.DataFrame]
    prints: Mapping[str, str]

    def label(self, name: str) -> str:
        """A frame's name and height, or the file's path."""
        if name in self.frames:
            return f"{name}: a frame of {self.frames[name].height} rows"
        return Evidence.label(self, name)

    def sha256(self, name: str) -> str:
        """Fingerprint of the frame's rows as JSON lines, or of the file's bytes."""
        return self.prints[name] if name in self.prints else Evidence.sha256(self, name)

    def rows(self, name: str) -> pl.DataFrame:
        """The frame, or the checked rows of the file."""
        return self.frames[name] if name in self.frames else Evidence.rows(self, name)


def held(run: Run, frames: Mapping[str, pl.DataFrame]) -> FrameEvidence:
    """A run's evidence with frames instead of some of its files.

    Args:
        run: supplies the configuration, packs and other files.
        frames: `pool` or `shadow` -> rows of the pool's schema; other columns are ignored.

    Raises:
        RowError: names the faulty frame, column and row.
    """
    checked = {name: check_rows(_typed(frame, name), _shown(name), name) for name, frame in frames.items()}
    return FrameEvidence(run, checked, {name: _sha256(frame) for name, frame in checked.items()})


def _typed(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    missing = [column for column in ROW_COLUMNS if column not in frame.columns]
    if missing:
        raise RowError(
            f"{_shown(name)}: has no column {', '.join(missing)}; expected the columns of a pool, as read_rows "
            "returns them"
        )
    if frame.is_empty():
        raise RowError(f"{_shown(name)}: has no rows, expected at least one")
    for column, kind in ROW_COLUMNS.items():
        try:
            frame = frame.with_columns(pl.col(column).cast(kind))
        except pl.exceptions.PolarsError:
            raise RowError(f"{_shown(name)}: column '{column}' holds {frame.schema[column]}, expected {kind}") from None
    return frame.select(*ROW_COLUMNS)


def _shown(name: str) -> Path:
    return Path(f"the frame '{name}'")


def _sha256(frame: pl.DataFrame) -> str:
    return hashlib.sha256(frame.write_ndjson().encode()).hexdigest()
