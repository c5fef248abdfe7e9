"""`rc1 world export`: output, exit codes and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extras.worlds.small import PRICES, small_run

from .conftest import Rc1, settings

SETTINGS = settings(PRICES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    small_run(tmp_path)
    return tmp_path


def test_export_leaves_the_evaluation_out_and_replaces_nothing(rc1: Rc1, root: Path) -> None:
    done = rc1("world", "export", "--workspace", root, *SETTINGS)
    assert done.code == 0
    assert "2 rows of data/rollouts/rc1_seed.balanced.jsonl" in done.out
    assert "pool-hotpotqa-1" not in (root / "outputs/rc1_world/rows.jsonl").read_text(), "it belongs to the evaluation"
    assert "the judge's share, 0.3 of the reward, is left out" in done.out
    again = rc1("world", "export", "--workspace", root, *SETTINGS)
    assert (again.code, "already exists" in again.err) == (2, True)


def test_custom_rows_are_exported(rc1: Rc1, root: Path) -> None:
    own = root / "own.jsonl"
    own.write_text((root / "data/rollouts/rc1_seed.balanced.jsonl").read_text().splitlines()[0] + "\n")
    to = ("--to", "outputs/mine", "--workspace", root, *SETTINGS)
    assert "1 rows of own.jsonl" in rc1("world", "export", "--rows", "own.jsonl", *to).out
