"""What gates read: files by name, opened once per process and fingerprinted as they are read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import polars as pl

from rc1_lib.artifacts import sha256_file, sha256_folder, sha256_tree
from rc1_lib.difficulty.steps import read_metrics
from rc1_lib.errors import RC1Error, RowError
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.schema import check_balanced, check_rows
from rc1_lib.run import Run
from rc1_lib.scoring.prompt import FOLDER as JUDGE_SPECS

ROW_FILES = ("pool", "shadow", "takes", "balanced")
FOLDERS = ("templates", "reference_templates")
BASE = "base"
FILES = (*ROW_FILES, "metrics", "weights", "config", "judge_spec", *FOLDERS)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The files of one run, by the names of `names`."""

    run: Run

    @property
    def names(self) -> tuple[str, ...]:
        """What a preflight reads and a ticket vouches for; `base` where the base model lies in a folder.

        A base that is on the hub has no bytes here; its commit is among the facts of every checkpoint.
        """
        return (*FILES, BASE) if self.path(BASE).is_dir() else FILES

    def path(self, name: str) -> Path:
        """Where the file or folder `name` lies."""
        config, place = self.run.config, self.run.workspace
        if name == "config":
            return self.run.config_path
        written = {
            "pool": config.pool.path,
            "shadow": config.shadow.path,
            "takes": config.ablation.takes_path,
            "weights": config.weights,
            "balanced": config.difficulty.balanced_path,
            "metrics": config.difficulty.metrics_path,
        }
        given = {
            "judge_spec": f"{JUDGE_SPECS}/{config.judge.spec}.yaml",
            "templates": config.pool.templates_dir,
            "reference_templates": config.pool.reference_templates_dir,
            BASE: config.base_model,
        }
        return place.path(written[name]) if name in written else place.find(given[name])

    def label(self, name: str) -> str:
        """The path as reports show it: relative to the workspace or the project."""
        return self.run.workspace.name(self.path(name))

    def sha256(self, name: str) -> str:
        """Fingerprint of the file's bytes, or of a folder's names and bytes.

        Raises:
            RC1Error: when it is not there.
        """
        path = self.path(name)
        if not path.exists():
            made_by = "; rc1 calibrate finds them" if name == "weights" else "; rc1 preflight writes what is missing"
            raise RC1Error(f"{path}: there is no such file, and {name} is needed as evidence{made_by}")
        if name == BASE:
            return sha256_folder(path)
        return sha256_tree(path) if name in FOLDERS else sha256_file(path)

    def rows(self, name: str) -> pl.DataFrame:
        """The checked rows of `pool`, `shadow`, `takes` or `balanced`.

        Raises:
            RowError: when they are missing or not rows.
        """
        frame = _rows(self.path(name), self.sha256(name), "pool" if name in ("pool", "balanced") else "shadow")
        return check_balanced(frame, self.metrics(), self.path(name)) if name == "balanced" else frame

    def balanced_foreign_lines(self) -> int:
        """How many lines of the balanced pool are not, byte for byte, lines of the pool; -1 when a file is missing."""
        paths = [self.path(name) for name in ("pool", "balanced")]
        if not all(path.is_file() for path in paths):
            return -1
        with paths[0].open("rb") as pool, paths[1].open("rb") as balanced:
            own = {hashlib.blake2b(line.rstrip(b"\n"), digest_size=16).digest() for line in pool}
            return sum(hashlib.blake2b(line.rstrip(b"\n"), digest_size=16).digest() not in own for line in balanced)

    def metrics(self) -> pl.DataFrame:
        """The checked difficulty metrics; raises `RowError` when they are missing or damaged."""
        return read_metrics(self.run)


@lru_cache(maxsize=4)
def _rows(path: Path, sha256: str, split: str) -> pl.DataFrame:
    """Rows by content: several gates of one process read the same file."""
    frame = check_rows(read_rows(path), path, split)
    if sha256_file(path) != sha256:
        raise RowError(f"{path}: changed while it was read; run again when nothing writes to it")
    return frame
