"""Planning while something else is waited for: the same rows, taken once, and only where no file decides them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.pool import plan_ahead as ahead
from rc1_lib.pool import seed
from rc1_lib.pool.build import Plans
from rc1_lib.pool.plan_ahead import plan_ahead, planned_ahead
from rc1_lib.pool.seed import build_seed
from rc1_lib.provenance.build_policy import Build
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.file_hashes import sha256_file
from tests.conftest import SMALL

FEW = (*SMALL, "pool.n=200", "shadow.n=40")


@pytest.fixture(autouse=True)
def nothing_planned() -> Iterator[None]:
    ahead._PLANNED.clear()
    yield
    ahead._PLANNED.clear()


def few(folder: Path, *overrides: str) -> Run:
    return open_run(workspace=folder, overrides=(*FEW, *overrides))


def again(*_: object, **__: object) -> Plans:
    raise AssertionError("planned again")


def test_rows_that_were_planned_ahead_are_the_same_and_planned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = few(tmp_path / "early"), few(tmp_path / "late")
    build_seed(late)
    plan_ahead(few(tmp_path / "early"), "auto")  # opened by somebody else, as the command opens what the flow opens too
    with monkeypatch.context() as patched:
        patched.setattr(seed, "plan", again)
        build_seed(early)
    for path in (early.config.pool.path, early.config.shadow.path, early.config.ablation.takes_path):
        assert sha256_file(early.workspace.path(path)) == sha256_file(late.workspace.path(path))
    assert planned_ahead(early.config) is None


def test_a_plan_of_another_configuration_is_no_plan(tmp_path: Path) -> None:
    plan_ahead(few(tmp_path), "auto")
    assert planned_ahead(few(tmp_path, "pool.seed=7").config) is None


@pytest.mark.parametrize("build", ["auto", "never"])
def test_where_nothing_will_be_built_nothing_is_planned(tmp_path: Path, build: Build) -> None:
    run = few(tmp_path)
    if build == "auto":
        path = run.workspace.path(run.config.pool.path)
        path.parent.mkdir(parents=True)
        path.touch()
    plan_ahead(run, build)
    assert planned_ahead(run.config) is None


def test_where_all_is_built_again_it_is_planned_beside_the_pool_that_is_there(tmp_path: Path) -> None:
    run = few(tmp_path)
    path = run.workspace.path(run.config.pool.path)
    path.parent.mkdir(parents=True)
    path.touch()
    plan_ahead(run, "always")
    assert planned_ahead(run.config) is not None


@pytest.mark.parametrize("decisive", ["sources.use={}", "pool.hold_out={}"])
def test_what_files_decide_is_planned_when_they_are_read(tmp_path: Path, decisive: str) -> None:
    run = few(tmp_path, decisive.format(tmp_path / "rows.jsonl"))
    plan_ahead(run, "auto")
    assert not ahead._PLANNED


def test_what_cannot_be_planned_is_for_the_step_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Plans:
        raise SourceError("too few questions")

    run = few(tmp_path)
    for room in (ahead, seed):
        monkeypatch.setattr(room, "plan", refuse)
    plan_ahead(run, "auto")
    with pytest.raises(SourceError, match="too few questions"):
        build_seed(run)
