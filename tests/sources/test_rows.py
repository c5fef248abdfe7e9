"""Finished dialogues in the pool's schema can be a source, and stay unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.pool.seed import build_seed
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL


def test_a_pool_of_finished_rows_keeps_their_dialogues(built: Run, tmp_path: Path) -> None:
    source = built.workspace.path(built.config.pool.path)
    run = open_run(workspace=tmp_path, overrides=[*SMALL, "pool.n=400", f"sources.use={source}"])
    build_seed(run)
    before = {row["source_id"]: row for row in read_rows(source).iter_rows(named=True)}
    after = read_rows(tmp_path / run.config.pool.path)
    assert after.height == 400
    for row in after.iter_rows(named=True):
        assert row["messages"] == before[row["source_id"]]["messages"]
    shadow = read_rows(tmp_path / run.config.shadow.path)
    assert not set(shadow["source_id"]) & set(after["source_id"])


def test_too_few_finished_rows_raise_an_error_instead_of_repeating_rows(built: Run, tmp_path: Path) -> None:
    source = built.workspace.path(built.config.pool.path)
    run = open_run(workspace=tmp_path, overrides=[*SMALL, "pool.n=1100", f"sources.use={source}"])
    with pytest.raises(RC1Error, match=r"sources\.max_uses"):
        build_seed(run)


def test_an_invalid_source_line_raises_an_error_that_names_it(built: Run, tmp_path: Path) -> None:
    lines = built.workspace.path(built.config.pool.path).read_bytes().splitlines()[:3]
    source = tmp_path / "rows.jsonl"
    source.write_bytes(b"\n".join([*lines, b'{"id": "x", "messages": 3}']))
    run = open_run(workspace=tmp_path, overrides=[*SMALL, f"sources.use={source}"])
    with pytest.raises(RC1Error, match=r"line 4: .*'messages' .*'3'"):
        build_seed(run)
