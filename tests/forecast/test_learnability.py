"""The start really plays: takes that differ, a policy that always does the same, and the look before a training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.learnability import REPORT, check_learnable, run_learnability, sample
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import prepare
from rc1_lib.workspace.artifacts import read_json

Tiny = Callable[..., Run]
FEW = ("gates.learnability.min_prompts=1",)
EASY = (
    *FEW,
    "training.held_out.prompts=40",
    "gates.learnability.max_flat=1",
    "gates.learnability.max_alike=1",
    "gates.learnability.min_pass_n=0",
    "gates.learnability.max_effect_pp=1000",
)


def test_a_sample_has_every_task_and_bucket_in_its_share(tiny: Tiny) -> None:
    rows = prepare(tiny()).selection.train
    chosen = sample(rows, 30, 1)
    assert chosen == sample(rows, 30, 1) != sample(rows, 30, 2)
    assert len({row["id"] for row in chosen}) == 30
    of_all, of_chosen = (Counter(f"{row['task']} {row['bucket']}" for row in some) for some in (rows, chosen))
    for name, count in of_all.items():
        assert abs(of_chosen[name] - 30 * count / len(rows)) <= 1
    assert len(sample(rows, 10**6, 1)) == len(rows)


def test_takes_differ_by_themselves_and_a_policy_that_always_does_the_same_is_red(tiny: Tiny) -> None:
    run = tiny(*EASY)
    free = run_learnability(prepare(run))
    assert {check.name for check in free.gate.failures} == set()
    assert free.body["groups"]["all"]["flat"]["value"] < 1
    assert read_json(run.workspace.path(REPORT))["gate"]["status"] == "passed"
    assert not run.workspace.path("checkpoints/rc1").exists()

    same = run_learnability(prepare(tiny(*FEW, "training.rollout.temperature=1e-4")))
    assert same.body["groups"]["all"]["flat"]["value"] == 1.0
    assert "all: share without a difference between takes" in {check.name for check in same.gate.failures}


def test_a_training_looks_first_only_where_it_is_told_to_and_begins_anew(tiny: Tiny) -> None:
    dull = (*FEW, "training.rollout.temperature=1e-4")
    prepared = prepare(tiny(*dull, "training.learnability.at_start=true"))
    seed = prepared.run.config.seeds[0]
    with pytest.raises(RC1Error, match=r"learnability failed, so nothing was trained: .*share without a difference"):
        check_learnable(prepared, [seed])
    report = prepared.run.workspace.path(REPORT)
    report.unlink()
    check_learnable(prepare(tiny(*dull)), [seed])
    (prepared.run.workspace.path("checkpoints/rc1/step_00002")).mkdir(parents=True)
    check_learnable(prepared, [seed])
    assert not report.exists()
