"""Metrics and balanced pool as files: values that the builder cached are reused and equal those computed again."""

from __future__ import annotations

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

Cached = dict[str, tuple[Difficulty, pl.DataFrame]]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cached]:
    """The pool, built once, and the metrics that its builder cached."""
    run = open_run(workspace=tmp_path_factory.mktemp("pooled"), overrides=SMALL)
    build_seed(run, ("pool",))
    return run.workspace.root, dict(features._CACHE)


@pytest.fixture
def pooled(once: tuple[Path, Cached], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of the pool with the builder's cache, as right after the build."""
    root, cached = once
    shutil.copytree(root, tmp_path / "workspace")
    monkeypatch.setattr(features, "_CACHE", dict(cached))
    return open_run(workspace=tmp_path / "workspace", overrides=SMALL)


def unexpected(*_: object) -> pl.DataFrame:
    raise AssertionError("computed a second time")


def written(run: Run) -> bytes:
    return run.workspace.path(run.config.difficulty.metrics_path).read_bytes()


def test_cached_metrics_of_the_builder_equal_measured_ones(pooled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(steps, "measure", unexpected)
        write_metrics(pooled)
    from_cache = written(pooled)
    monkeypatch.setattr(features, "_CACHE", {})
    write_metrics(pooled)
    assert written(pooled) == from_cache


def test_changed_pool_is_measured_again(pooled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pooled.workspace.path(pooled.config.pool.path)
    monkeypatch.setattr(steps, "measure", unexpected)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(AssertionError, match="second time"):
        write_metrics(pooled)


def test_cached_balanced_pool_equals_the_parsed_one(pooled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_metrics(pooled)
    write_balanced(pooled)
    path = pooled.workspace.path(pooled.config.difficulty.balanced_path)
    with monkeypatch.context() as patched:
        patched.setattr(frame, "_parsed", unexpected)
        cached = read_rows(path)
    monkeypatch.setattr(frame, "_CACHE", type(frame._CACHE)())
    assert_frame_equal(cached, read_rows(path))
