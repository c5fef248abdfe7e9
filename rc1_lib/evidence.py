"""The list of everything that a run is given and that RC1 derives, in the order of building, and how gates read it.

This and `rc1_lib.vouched`, with which it begins, are the only lists: what a preflight reads, what a ticket pins and
what the gate `integrity` checks follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.calibration.derived import JUDGE_BASELINE, WEIGHTS
from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.difficulty.steps import read_metrics
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.provenance.derived import Artifact, Described
from rc1_lib.rows.lines import foreign_lines
from rc1_lib.run import Run
from rc1_lib.training.derived import CHECKPOINT, REFERENCE
from rc1_lib.vouched import DATA, GIVEN, bound
from rc1_lib.workspace.file_hashes import sha256_known

DERIVED: tuple[Artifact, ...] = (
    *DATA, WEIGHTS, HACKING, ABLATION, JUDGE_BASELINE, REFERENCE, CHECKPOINT, EVALUATION,
)  # fmt: skip
_ALL: tuple[Described, ...] = (*DERIVED, *GIVEN)
_BY_NAME = {one.name: one for one in _ALL}
ALL_NAMES = tuple(_BY_NAME)
_ROWS = {one.name: one for one in DATA}


def described(name: str) -> Described:
    """Return the description with this name.

    Raises:
        RC1Error: when there is none.
    """
    if name not in _BY_NAME:
        raise RC1Error(f"unknown file '{name}', expected one of {', '.join(ALL_NAMES)}")
    return _BY_NAME[name]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The files of one run, by the names of `names`."""

    run: Run

    @property
    def names(self) -> tuple[str, ...]:
        """Names of everything that a preflight reads and a ticket pins."""
        return tuple(bound(self.run))

    @property
    def tasks(self) -> list[str]:
        """The tasks of the mix, which gates also judge one by one."""
        return list(self.run.config.datasets)

    def thresholds(self, gate: str) -> Any:
        """Return the section `gates.<gate>` of the configuration, which a gate of another package asks for by name."""
        return getattr(self.run.config.gates, gate)

    def path(self, name: str) -> Path:
        """Return the path of the file or folder `name`."""
        return described(name).path(self.run)

    def label(self, name: str) -> str:
        """Return the path as reports show it: relative to the workspace or the project."""
        return self.run.workspace.name(self.path(name))

    def sha256(self, name: str) -> str:
        """Return the fingerprint of the file's bytes, or of a folder's names and bytes.

        Raises:
            RC1Error: when it does not exist.
        """
        return described(name).sha256(self.run)

    def rows(self, name: str) -> pl.DataFrame:
        """Return the checked rows of `pool`, `shadow`, `takes` or `balanced`.

        Raises:
            RowError: when they are missing or not rows.
        """
        return rows_of(self.run, _ROWS[name])

    def balanced_foreign_lines(self) -> int:
        """Count the lines of the balanced pool that are not, byte for byte, in the pool; -1 if a file is missing."""
        pool, balanced = (self.path(name) for name in ("pool", "balanced"))
        if not (pool.is_file() and balanced.is_file()):
            return -1
        return _foreign_lines(balanced, pool, self.sha256("balanced"), self.sha256("pool"))

    def metrics(self) -> pl.DataFrame:
        """Return the checked difficulty metrics; raises `RowError` if they are missing or damaged."""
        return read_metrics(self.run)


@lru_cache(maxsize=1)
def _foreign_lines(part: Path, whole: Path, part_sha256: str, whole_sha256: str) -> int:
    found = foreign_lines(part, whole)
    for path, sha256 in ((part, part_sha256), (whole, whole_sha256)):
        if sha256_known(path) != sha256:
            raise RC1Error(f"{path}: changed while it was read; run again when nothing writes to it")
    return found
