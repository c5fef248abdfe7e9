"""What gates read: the files of a run by their names in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import polars as pl

from rc1_lib.difficulty.steps import read_metrics
from rc1_lib.errors import RC1Error
from rc1_lib.evidence.registry import DATA, bound, described
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.provenance.derived import Artifact
from rc1_lib.rows.lines import foreign_lines
from rc1_lib.run import Run
from rc1_lib.workspace.file_hashes import sha256_known

_ROWS: dict[str, Artifact] = {one.name: one for one in DATA}


@lru_cache(maxsize=1)
def _foreign_lines(part: Path, whole: Path, part_sha256: str, whole_sha256: str) -> int:
    """Lines by content."""
    found = foreign_lines(part, whole)
    for path, sha256 in ((part, part_sha256), (whole, whole_sha256)):
        if sha256_known(path) != sha256:
            raise RC1Error(f"{path}: changed while it was read; run again when nothing writes to it")
    return found


@dataclass(frozen=True, slots=True)
class Evidence:
    """The files of one run, by the names of `names`."""

    run: Run

    @property
    def names(self) -> tuple[str, ...]:
        """What a preflight reads and a ticket vouches for."""
        return tuple(bound(self.run))

    def path(self, name: str) -> Path:
        """The path of the file or folder `name`."""
        return described(name).path(self.run)

    def label(self, name: str) -> str:
        """The path as reports show it: relative to the workspace or the project."""
        return self.run.workspace.name(self.path(name))

    def sha256(self, name: str) -> str:
        """Fingerprint of the file's bytes, or of a folder's names and bytes.

        Raises:
            RC1Error: when it does not exist.
        """
        return described(name).sha256(self.run)

    def rows(self, name: str) -> pl.DataFrame:
        """The checked rows of `pool`, `shadow`, `takes` or `balanced`.

        Raises:
            RowError: when they are missing or not rows.
        """
        return rows_of(self.run, _ROWS[name])

    def balanced_foreign_lines(self) -> int:
        """How many lines of the balanced pool are not, byte for byte, lines of the pool; -1 when a file is missing."""
        pool, balanced = (self.path(name) for name in ("pool", "balanced"))
        if not (pool.is_file() and balanced.is_file()):
            return -1
        return _foreign_lines(balanced, pool, self.sha256("balanced"), self.sha256("pool"))

    def metrics(self) -> pl.DataFrame:
        """The checked difficulty metrics; raises `RowError` when they are missing or damaged."""
        return read_metrics(self.run)
