"""One workspace killed in every stage of preflight and training; `benchmarks/bench_kills.py` has ten of them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.kills.lives import Life
from tests.kills.worlds import OVERRIDES, PLAN, write_small_base

SEED = 20250819
"""Seed of the moments; the benchmark has others."""


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_workspace_killed_in_every_stage_ends_with_the_same_contents(tmp_path: Path) -> None:
    whole, killed = Life(tmp_path / "whole", OVERRIDES), Life(tmp_path / "killed", OVERRIDES)
    write_small_base(whole.root)
    shutil.copytree(whole.root / "base", killed.root / "base")
    like = whole.undisturbed()
    assert set(like.codes.values()) == {0}
    assert killed.meet(PLAN, like, random.Random(SEED)) == {}
    assert [kill.wrong for kill in killed.kills] == [()] * len(PLAN)
