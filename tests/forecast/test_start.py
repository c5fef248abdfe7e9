"""Before the first step of a training, each base from which PPO can't learn fails its own check."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.forecast import learnability
from rc1_lib.forecast.learnability import GATE, START_REPORT, check_learnable
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import Prepared, advance, prepare
from rc1_lib.workspace.artifacts import read_json, recorded_write
from tests.forecast.hopeless import MALFORMED, SAYS_YES, SURE, base_that_rambles, base_that_says
from tests.training.tiny_world import SUPERVISED

Tiny = Callable[..., Run]
Rows = list[dict[str, Any]]
LONG = "The records of the town agree with the records of the town, and so do I."
START = ("training.learnability.at_start=24",)


def with_answer(prepared: Prepared, answer: str) -> Prepared:
    """Keep the training rows with this answer and without missing information."""
    train = [row for row in prepared.selection.train if row["answer"] == answer and not row["needs_clarification"]]
    return replace(prepared, selection=replace(prepared.selection, train=train))


def start_error(prepared: Prepared) -> str:
    with pytest.raises(RC1Error, match=r"^learnability failed") as caught:
        check_learnable(prepared, prepared.run.config.seeds)
    assert not prepared.run.workspace.path("checkpoints/rc1").exists()
    return str(caught.value)


def failed(prepared: Prepared) -> set[str]:
    return {
        one["name"].removeprefix("all: ")
        for one in read_json(prepared.run.workspace.path(START_REPORT))["gate"]["checks"]
        if not one["passed"]
    }


def test_base_that_never_ends_a_turn_fails_after_a_few_prompts(tiny: Tiny) -> None:
    run = tiny(*START)
    base_that_rambles(run)
    prepared = prepare(run)
    error = start_error(prepared)
    assert failed(prepared) == {"turns cut, share"}
    assert "wanted <= 0.2: " in error and "192 tokens" in error
    assert "training.warm_start.steps" in error
    body = read_json(run.workspace.path(START_REPORT))
    assert body["groups"]["all"]["prompts"] == 8, "the other prompts are not played"
    assert body["turns"]["cut"] > 0.9 * body["turns"]["turns"] and body["turns"]["cut_while_thinking"] == 0


def test_too_small_rollout_len_is_reported_with_the_value_to_set(tiny: Tiny, pool: Rows) -> None:
    words = f"{LONG} {SAYS_YES}"
    run = tiny(*START, SURE, "rollout_len=8")
    base_that_says(run, words, pool)
    prepared = prepare(run)
    needed = len(prepared.form.turn_ids({"role": "assistant", "content": words}))
    to_set = -(-needed // 16) * 16
    assert 8 < needed <= 64
    assert f"8 (rollout_len): set rollout_len to {to_set} " in start_error(prepared)
    assert failed(prepared) == {"turns cut, share", "tokens of 95% of the turns that end"}


def test_base_that_is_always_malformed_fails(tiny: Tiny, pool: Rows) -> None:
    run = tiny(*START, SURE)
    base_that_says(run, MALFORMED, pool)
    prepared = prepare(run)
    error = start_error(prepared)
    assert failed(prepared) == {"episodes with a malformed turn, share"}
    assert "wanted <= 0.5: " in error


@pytest.mark.parametrize(
    ("answer", "check", "threshold"),
    [
        ("yes", "share that every take solves", "wanted <= 0.95: "),
        ("no", "solved by one take of all", "wanted >= 0.05: "),
    ],
)
def test_base_that_solves_all_or_nothing_fails(
    tiny: Tiny, pool: Rows, answer: str, check: str, threshold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learnability, "LEAST_TRIED", 4)
    run = tiny(*START, SURE)
    base_that_says(run, SAYS_YES, pool)
    prepared = with_answer(prepare(run), answer)
    error = start_error(prepared)
    assert check in error and threshold in error and "without a difference" not in error
    assert failed(prepared) == {
        check, "share without a difference between rollouts", "share that all rollouts solve, or none",
    }  # fmt: skip


def test_start_check_runs_once_per_training_and_does_not_change_it(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_FLAT", "MAX_ALIKE", "MAX_CUT", "MAX_MALFORMED"):
        monkeypatch.setattr(learnability, name, 1.0)
    monkeypatch.setattr(learnability, "MIN_PASS_N", 0.0)
    monkeypatch.setattr(learnability, "price_checks", lambda price: [])
    run, unchecked = tiny(*START, "rollout_len=64"), tiny("rollout_len=64", name="unchecked")
    prepared, seeds = prepare(run), run.config.seeds[:1]
    assert "training.learnability.at_start is 0" in check_learnable(prepare(unchecked), seeds)
    first = check_learnable(prepared, seeds)
    assert "of 24 prompts with 8 rollouts each" in first
    report = run.workspace.path(START_REPORT)
    before = read_json(report)
    assert "passed before" in check_learnable(prepared, seeds), "as after a kill before the first checkpoint"
    with recorded_write(run.workspace, START_REPORT, {"kind": GATE}) as stream:
        stream.write(json.dumps(before | {"facts": "of another training"}).encode())
    assert check_learnable(prepared, seeds).split(" s: ")[1] == first.split(" s: ")[1]
    assert {**read_json(report), "time": ""} == {**before, "time": ""}
    ends = [advance(one, seeds[0], 2, lambda _: None) for one in (prepare(unchecked), prepared)]
    assert len({(end / "adapter.safetensors").read_bytes() for end in ends}) == 1
    report.unlink()
    assert check_learnable(prepared, seeds) == "" and not report.exists()
    other = prepare(tiny(*START, "rollout_len=64", "lr=0.02"))
    assert "of 24 prompts" in check_learnable(other, seeds), "the checkpoint belongs to another run"


def test_engines_that_learn_from_given_dialogues_are_not_checked(tiny: Tiny) -> None:
    run = tiny(*START, *SUPERVISED["pure_pt_sft"])
    base_that_rambles(run)
    assert check_learnable(prepare(run), run.config.seeds) == ""
