"""Before the first step of a training: each base from which nothing can be learned is stopped by its own check."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.learnability import GATE, START_REPORT, check_learnable
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import Prepared, advance, prepare
from rc1_lib.workspace.artifacts import read_json, recorded_write, write_json
from tests.forecast.hopeless import MALFORMED, SAYS_YES, base_that_rambles, base_that_says
from tests.training.tiny_world import SUPERVISED

Tiny = Callable[..., Run]
Rows = list[dict[str, Any]]
START = ("training.learnability.at_start=24", "gates.learnability.min_prompts=10")
OPEN = (
    "gates.learnability.max_flat=1", "gates.learnability.max_alike=1", "gates.learnability.min_pass_n=0",
    "gates.learnability.max_cut=1", "gates.learnability.max_malformed=1", "rollout_len=64",
)  # fmt: skip


def only(prepared: Prepared, answer: str) -> Prepared:
    """With rows of this answer alone, where nothing is missing."""
    train = [row for row in prepared.selection.train if row["answer"] == answer and not row["needs_clarification"]]
    return replace(prepared, selection=replace(prepared.selection, train=train))


def refusal(prepared: Prepared) -> str:
    with pytest.raises(RC1Error, match=r"^learnability failed") as refused:
        check_learnable(prepared, prepared.run.config.seeds)
    assert not prepared.run.workspace.path("checkpoints/rc1").exists()
    return str(refused.value)


def failed(prepared: Prepared) -> set[str]:
    return {
        one["name"].removeprefix("all: ")
        for one in read_json(prepared.run.workspace.path(START_REPORT))["gate"]["checks"]
        if not one["passed"]
    }


def test_a_base_that_rambles_is_stopped_after_a_few_prompts(tiny: Tiny) -> None:
    run = tiny(*START)
    base_that_rambles(run)
    prepared = prepare(run)
    words = refusal(prepared)
    assert failed(prepared) == {"turns cut, share"}
    assert "expected at most 0.2 (gates.learnability.max_cut): with room for 192 tokens, " in words
    assert "turns still do not end: warm up longer (training.warm_start.steps) or use a base that ends" in words
    body = read_json(run.workspace.path(START_REPORT))
    assert body["groups"]["all"]["prompts"] == 8, "the others were not played"
    assert body["turns"]["cut"] > 0.9 * body["turns"]["turns"] and body["turns"]["cut_while_thinking"] == 0


def test_a_rollout_len_below_the_turns_of_the_base_is_named_with_the_value_to_set(tiny: Tiny, pool: Rows) -> None:
    words = "The records of the town agree with the records of the town, and so do I. " + SAYS_YES
    run = tiny(*START, "rollout_len=8")
    base_that_says(run, words, pool)
    prepared = prepare(run)
    needed = len(prepared.form.turn_ids({"role": "assistant", "content": words}))
    to_set = -(-needed // 16) * 16
    assert 8 < needed <= 64
    assert f"expected at most 8 (rollout_len): set rollout_len to {to_set} " in refusal(prepared)
    assert failed(prepared) == {"turns cut, share", "tokens of 95% of the turns that end"}


def test_thoughts_that_never_end_are_named(tiny: Tiny, pool: Rows) -> None:
    run = tiny(*START)
    base_that_says(run, "<think>" + " so it is" * 40, pool)
    words = refusal(prepare(run))
    assert "cut turns never closed <think>: a model that thinks needs room for its thoughts (training.rollout." in words


def test_a_base_that_is_always_malformed_is_stopped(tiny: Tiny, pool: Rows) -> None:
    run = tiny(*START)
    base_that_says(run, MALFORMED, pool)
    prepared = prepare(run)
    words = refusal(prepared)
    assert failed(prepared) == {"episodes with a malformed turn, share"}
    assert "expected at most 0.5 (gates.learnability.max_malformed): warm up longer" in words


@pytest.mark.parametrize(
    ("answer", "check", "words"),
    [
        ("yes", "share that every take solves", "1, expected at most 0.95 (gates.learnability.max_alike): nothing is "),
        ("no", "solved by one take of all", "0, expected at least 0.05 (gates.learnability.min_pass_n): success is "),
    ],
)
def test_a_base_that_solves_all_or_nothing_is_stopped(
    tiny: Tiny, pool: Rows, answer: str, check: str, words: str
) -> None:
    run = tiny(*START, "gates.learnability.min_prompts=4")
    base_that_says(run, SAYS_YES, pool)
    prepared = only(prepare(run), answer)
    found = refusal(prepared)
    assert f"nothing was trained: {check}: {words}" in found and "max_flat" not in found
    assert failed(prepared) == {
        check, "share without a difference between takes", "share that all takes solve, or none",
    }  # fmt: skip


def test_rewards_without_a_difference_are_named_where_success_is_not_judged(tiny: Tiny, pool: Rows) -> None:
    run = tiny(*START, *OPEN, "gates.learnability.max_flat=0.9")
    base_that_says(run, SAYS_YES, pool)
    prepared = prepare(run)
    assert "expected at most 0.9 (gates.learnability.max_flat): comparing rollouts gives no signal" in refusal(prepared)
    assert failed(prepared) == {"share without a difference between takes"}


def test_it_is_asked_once_for_each_start_and_moves_nothing_of_the_training(tiny: Tiny) -> None:
    run, unasked = tiny(*START, *OPEN), tiny(*OPEN, name="unasked")
    prepared, seeds = prepare(run), run.config.seeds[:1]
    untried = check_learnable(prepare(unasked), seeds)
    assert untried == "learnability is not tried: training.learnability.at_start is 0"
    first = check_learnable(prepared, seeds)
    assert "of 24 prompts with 8 takes each" in first
    report = run.workspace.path(START_REPORT)
    before = read_json(report)

    def recorded(body: dict[str, Any]) -> None:
        with recorded_write(run.workspace, START_REPORT, {"kind": GATE}) as stream:
            stream.write(json.dumps(body).encode())

    assert "passed before" in check_learnable(prepared, seeds), "it was killed before its first checkpoint"
    for changed in ({"pass": False}, {"facts": "of another training"}, {"config_sha256": "of other bounds"}):
        recorded(before | changed)
        assert check_learnable(prepared, seeds).split(" s: ")[1] == first.split(" s: ")[1]
        assert {**read_json(report), "time": ""} == {**before, "time": ""}
    ends = [advance(one, seeds[0], 2, lambda _: None) for one in (prepare(unasked), prepared)]
    assert len({(end / "adapter.safetensors").read_bytes() for end in ends}) == 1
    report.unlink()
    assert check_learnable(prepared, seeds) == "" and not report.exists()
    other = prepare(tiny(*START, *OPEN, "lr=0.02"))
    assert "of 24 prompts" in check_learnable(other, seeds), "the checkpoint is another run's"


def test_a_report_that_says_passed_by_hand_is_not_believed(tiny: Tiny) -> None:
    run = tiny(*START)
    base_that_rambles(run)
    prepared = prepare(run)
    refusal(prepared)
    report = run.workspace.path(START_REPORT)
    write_json(report, read_json(report) | {"pass": True})
    refusal(prepared)
    assert failed(prepared)


def test_engines_that_learn_from_given_dialogues_are_not_asked(tiny: Tiny) -> None:
    run = tiny(*START, *SUPERVISED["pure_pt_sft"])
    base_that_rambles(run)
    assert check_learnable(prepare(run), run.config.seeds) == ""
