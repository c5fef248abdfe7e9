"""The initial policy really plays: its sampled rollouts differ, and those of a near-greedy policy do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.forecast import learnability
from rc1_lib.forecast.learnability import REPORT, run_learnability, sample
from rc1_lib.forecast.price import GAIN
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import prepare
from rc1_lib.workspace.artifacts import read_json
from tests.forecast.hopeless import MALFORMED, SAYS_YES, base_that_says

Tiny = Callable[..., Run]
Rows = list[dict[str, Any]]
OPEN = {"LEAST_TRIED": 1, "MAX_MALFORMED": 1.0, "MAX_CUT": 1.0, "MAX_FLAT": 1.0, "MAX_ALIKE": 1.0, "MIN_PASS_N": 0.0}
"""Bounds that every base keeps: what is checked is that rollouts differ."""


def test_sample_is_stratified_by_task_and_bucket(tiny: Tiny) -> None:
    rows = prepare(tiny()).selection.train
    chosen = sample(rows, 30, 1)
    assert chosen == sample(rows, 30, 1) != sample(rows, 30, 2)
    assert len({row["id"] for row in chosen}) == 30
    of_all, of_chosen = (Counter(f"{row['task']} {row['bucket']}" for row in some) for some in (rows, chosen))
    for name, count in of_all.items():
        assert abs(of_chosen[name] - 30 * count / len(rows)) <= 1
    assert len(sample(rows, 10**6, 1)) == len(rows)


def test_sampled_rollouts_differ_and_those_of_a_near_greedy_policy_do_not(
    tiny: Tiny, pool: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a base that answers four times as often as it is malformed, so that its likeliest words are never in doubt."""
    monkeypatch.setattr(learnability, "PROMPTS", 18)
    for name, bound in OPEN.items():
        monkeypatch.setattr(learnability, name, bound)
    run = tiny("training.held_out.prompts=40")
    base_that_says(run, [SAYS_YES] * 4 + [MALFORMED], pool)
    sampled = run_learnability(prepare(run))
    failed = {check.name for check in sampled.gate.failures}
    assert {name for name in failed if not name.startswith("smallest effect")} <= {GAIN}, "it cannot word a question"
    assert sampled.body["groups"]["all"]["flat"]["value"] < 1
    assert read_json(run.workspace.path(REPORT))["gate"]["status"] == sampled.gate.status
    assert not run.workspace.path("checkpoints/rc1").exists()

    monkeypatch.setattr(learnability, "MAX_FLAT", 0.9)
    greedy = run_learnability(prepare(tiny("training.rollout.temperature=0.0001")))
    assert greedy.body["groups"]["all"]["flat"]["value"] == 1.0
    assert "all: share without a difference between rollouts" in {check.name for check in greedy.gate.failures}
