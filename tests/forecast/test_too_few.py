"""A pool's metrics alone show what it is too small for."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.too_few import check_enough_held_out, check_groups_held_out, shortages
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import prepare, usable_base
from rc1_lib.training.rows import select_rows

Tiny = Callable[..., Run]


def test_reported_shortage_matches_the_error_of_training(tiny: Tiny) -> None:
    run = tiny()
    metrics = run.workspace.path(run.config.difficulty.metrics_path)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    longer = [{**line, "len_tokens": 10**6 if line["bucket"] == "hard" else line["len_tokens"]} for line in lines]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in longer))
    assert "no hard rows" in shortages(run)[0] and "training.max_tokens" in shortages(run)[0]
    with pytest.raises(RC1Error, match=r"training\.max_tokens"):
        prepare(run)


def test_held_out_prompts_are_not_undercounted(tiny: Tiny) -> None:
    held_out = len(prepare(tiny("training.held_out.prompts=1000")).selection.held_out)
    for most, needed in ((1000, held_out), (12, 12)):
        enough = tiny(f"training.held_out.prompts={most}", f"gates.evaluation.min_prompts={needed}")
        assert shortages(enough)[1] == ""
    few = tiny("training.held_out.prompts=12", "gates.evaluation.min_prompts=13")
    assert "12 prompts" in shortages(few)[1] and "13" in shortages(few)[1]
    check_enough_held_out(tiny("training.held_out.prompts=12", "gates.evaluation.min_prompts=12"))
    with pytest.raises(RC1Error, match=r"the evaluation needs 13 \(.*--no-evaluate"):
        check_enough_held_out(few)


def test_group_that_is_too_small_for_a_verdict_is_named_before_training(tiny: Tiny) -> None:
    run = tiny("gates.evaluation.min_group=1")
    held_out = select_rows(run, usable_base(run)[0]).held_out
    check_groups_held_out(run, held_out)
    hard = sum(row["bucket"] == "hard" and row["task"] != "gsm8k" for row in held_out)
    with pytest.raises(RC1Error, match=rf"\b{hard} hard prompts .* 7 .*min_group.*training\.held_out\.prompts"):
        check_groups_held_out(tiny("gates.evaluation.min_group=7"), held_out)


def test_too_few_judged_prompts_are_named_before_training_where_the_score_is_paid(tiny: Tiny) -> None:
    sizes = ("gates.evaluation.min_group=1", "gates.evaluation.min_prompts=10", "training.held_out.judged=9")
    run = tiny(*sizes)
    held_out = select_rows(run, usable_base(run)[0]).held_out
    check_groups_held_out(run, held_out)
    with pytest.raises(RC1Error, match=r"9 held-out prompts are judged.* needs 10 .*training\.held_out\.judged"):
        check_groups_held_out(tiny(*sizes, "training.reward.judge=0.3"), held_out)
