"""`rc1 world export` and `rc1 world verify`: output, exit codes and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.extras.worlds.small import PRICES, small_run

from .conftest import Rc1, settings

SETTINGS = settings(PRICES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    small_run(tmp_path)
    return tmp_path


def test_export_is_verified_and_differences_are_named(rc1: Rc1, root: Path) -> None:
    done = rc1("world", "export", "--workspace", root, *SETTINGS)
    assert done.code == 0
    assert "2 rows of data/rollouts/rc1_seed.balanced.jsonl" in done.out
    assert "pool-hotpotqa-1" not in (root / "outputs/rc1_world/rows.jsonl").read_text(), "it belongs to the evaluation"
    assert "the judge's share, 0.3 of the reward, is left out" in done.out
    again = rc1("world", "export", "--workspace", root, *SETTINGS)
    assert (again.code, "already exists" in again.err) == (2, True)
    same = rc1("world", "verify", "outputs/rc1_world", "--workspace", root, "--json", *SETTINGS)
    assert (same.code, json.loads(same.out)) == (0, {"same": True, "differences": []})
    other = rc1("world", "verify", "outputs/rc1_world", "--workspace", root, *SETTINGS, "--set", "overclar.cap=2")
    assert other.code == 2
    assert "openenv.yaml, rc1.reward.cap: the folder has 3, an export now would have 2" in other.out


def test_custom_rows_are_exported_and_verified(rc1: Rc1, root: Path) -> None:
    own = root / "own.jsonl"
    own.write_text((root / "data/rollouts/rc1_seed.balanced.jsonl").read_text().splitlines()[0] + "\n")
    to = ("--to", "outputs/mine", "--workspace", root, *SETTINGS)
    assert "1 rows of own.jsonl" in rc1("world", "export", "--rows", "own.jsonl", *to).out
    assert rc1("world", "verify", "outputs/mine", "--workspace", root, *SETTINGS).code == 0
    pool = ("--rows", "data/rollouts/rc1_seed.balanced.jsonl")
    assert rc1("world", "verify", "outputs/mine", *pool, "--workspace", root, *SETTINGS).code == 2
