"""Metrics and balanced pool as files: what the builder measured and parsed is not worked out twice, and is the same."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rc1_lib.config.data import Difficulty
from rc1_lib.difficulty import features, steps
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.pool.seed import build_seed
from rc1_lib.rows import frame
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL

Known = dict[str, tuple[Difficulty, pl.DataFrame]]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Known]:
    """The pool, built once, and what its builder knows of it."""
    run = open_run(workspace=tmp_path_factory.mktemp("pooled"), overrides=SMALL)
    build_seed(run, ("pool",))
    return run.workspace.root, dict(features._CACHE)


@pytest.fixture
def pooled(once: tuple[Path, Known], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of it, right after it was built."""
    root, known = once
    shutil.copytree(root, tmp_path / "workspace")
    monkeypatch.setattr(features, "_CACHE", dict(known))
    return open_run(workspace=tmp_path / "workspace", overrides=SMALL)


def unexpected(*_: object) -> pl.DataFrame:
    raise AssertionError("worked out a second time")


def written(run: Run) -> bytes:
    return run.workspace.path(run.config.difficulty.metrics_path).read_bytes()


def test_what_the_builder_measured_is_what_measuring_the_pool_gives(
    pooled: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(steps, "measure", unexpected)
        write_metrics(pooled)
    handed_on = written(pooled)
    monkeypatch.setattr(features, "_CACHE", {})
    write_metrics(pooled)
    assert written(pooled) == handed_on


def test_other_bytes_and_other_bounds_are_measured_anew(pooled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = [*SMALL, "difficulty.clarification_hard_turns=9"]
    other = open_run(workspace=pooled.workspace.root, overrides=overrides)
    path = pooled.workspace.path(pooled.config.pool.path)
    monkeypatch.setattr(steps, "measure", unexpected)
    with pytest.raises(AssertionError, match="a second time"):
        write_metrics(other)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(AssertionError, match="a second time"):
        write_metrics(pooled)


def test_the_balanced_pool_is_known_without_parsing_and_as_parsing_gives_it(
    pooled: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metrics(pooled)
    write_balanced(pooled)
    path = pooled.workspace.path(pooled.config.difficulty.balanced_path)
    with monkeypatch.context() as patched:
        patched.setattr(frame, "_parsed", unexpected)
        known = read_rows(path)
    monkeypatch.setattr(frame, "_CACHE", type(frame._CACHE)())
    assert_frame_equal(known, read_rows(path))


def test_of_a_pool_that_is_packed_and_marked_the_same_lines_are_balanced(pooled: Run) -> None:
    write_metrics(pooled)
    write_balanced(pooled)
    path = pooled.workspace.path(pooled.config.difficulty.balanced_path)
    plain = path.read_bytes()
    pool = pooled.workspace.path(pooled.config.pool.path)
    pool.write_bytes(gzip.compress(b"\xef\xbb\xbf" + pool.read_bytes()))
    write_balanced(pooled)
    assert path.read_bytes() == plain


def test_of_a_pool_that_was_written_while_it_was_balanced_nothing_is_known(
    pooled: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are those of the bytes that were copied, not of those that were parsed before."""
    write_metrics(pooled)
    path = pooled.workspace.path(pooled.config.pool.path)

    def read_and_overwrite(of: Path) -> pl.DataFrame:
        found = read_rows(of)
        path.write_bytes(path.read_bytes().replace(b'"style":"', b'"style":"another '))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(steps, "read_rows", read_and_overwrite)
        write_balanced(pooled)
    balanced = read_rows(pooled.workspace.path(pooled.config.difficulty.balanced_path))
    assert balanced["style"].str.starts_with("another ").all()
