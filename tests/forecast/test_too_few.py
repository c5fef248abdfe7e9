"""What a pool is plainly too small for is known from its metrics alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.forecast.too_few import check_enough_held_out, shortages
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import prepare

Tiny = Callable[..., Run]


def test_a_pool_that_can_be_trained_on_is_not_blamed(tiny: Tiny) -> None:
    run = tiny("gates.evaluation.min_prompts=1")
    assert prepare(run).selection.held_out
    assert shortages(run) == ("", "")


def test_what_is_said_of_a_bucket_is_what_training_refuses(tiny: Tiny) -> None:
    run = tiny()
    metrics = run.workspace.path(run.config.difficulty.metrics_path)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    longer = [{**line, "len_tokens": 10**6 if line["bucket"] == "hard" else line["len_tokens"]} for line in lines]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in longer))
    assert shortages(run)[0] == "no hard rows are left for training within training.max_tokens"
    with pytest.raises(RC1Error, match=r"training\.max_tokens"):
        prepare(run)


def test_held_out_prompts_are_never_counted_too_low(tiny: Tiny) -> None:
    held_out = len(prepare(tiny("training.held_out.prompts=1000")).selection.held_out)
    for most, wanted in ((1000, held_out), (12, 12)):
        enough = tiny(f"training.held_out.prompts={most}", f"gates.evaluation.min_prompts={wanted}")
        assert shortages(enough)[1] == ""
    few = tiny("training.held_out.prompts=12", "gates.evaluation.min_prompts=13")
    assert shortages(few)[1] == "at most 12 prompts are held out, the evaluation needs 13"
    check_enough_held_out(tiny("training.held_out.prompts=12", "gates.evaluation.min_prompts=12"))
    with pytest.raises(RC1Error, match=r"the evaluation needs 13 \(.*--no-evaluate"):
        check_enough_held_out(few)
