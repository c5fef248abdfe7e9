"""The watch over the project's own workspace sees what it has to see."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.own_workspace import OWN, SHIPPED, everything, watched


@pytest.mark.parametrize("name", OWN)
def test_whoever_opens_a_file_of_the_own_workspace_is_named(name: str) -> None:
    with watched() as opened, contextlib.suppress(OSError):
        (PROJECT_ROOT / name / "nobody/has/this.json").read_bytes()
    assert len(opened) == 1 and "test_whoever_opens" in opened[0] and "this.json" in opened[0]


def test_a_relative_path_and_a_database_are_seen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT_ROOT)
    with watched() as opened:
        for look in (lambda: os.listdir("data/nowhere"), lambda: sqlite3.connect("data/nowhere/x.sqlite")):
            with contextlib.suppress(OSError, sqlite3.OperationalError):
                look()
    assert len(opened) == 2


def test_shipped_files_may_be_read(tmp_path: Path) -> None:
    with watched() as opened:
        (PROJECT_ROOT / "configs/local.yaml").read_bytes()
        (tmp_path / "data").mkdir()
    assert opened == []


@pytest.mark.parametrize("top", [*OWN, *SHIPPED])
def test_every_alteration_shows(tmp_path: Path, top: str) -> None:
    file = tmp_path / top if top.endswith(".json") else tmp_path / top / "deep/file.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    before = everything(tmp_path)
    assert everything(tmp_path) == before
    file.write_text("[]")
    os.utime(file, ns=(1, 1))
    assert everything(tmp_path) != before
    file.unlink()
    assert everything(tmp_path).keys() != before.keys()


def test_a_new_name_beside_them_shows_and_a_cache_does_not(tmp_path: Path) -> None:
    before = everything(tmp_path)
    (tmp_path / ".mypy_cache").mkdir()
    assert everything(tmp_path) == before
    (tmp_path / "stray.txt").write_text("x")
    assert everything(tmp_path) != before
