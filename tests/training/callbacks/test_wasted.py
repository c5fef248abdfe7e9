"""Real runs without a learning signal end at a bound with a checkpoint, and continue only with more patience."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.callbacks.collapse import CollapsedError
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.control import Control
from rc1_lib.training.ppo_run import Prepared, advance, prepare
from tests.forecast.hopeless import SAYS_YES, SURE, base_that_rambles, base_that_says
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]
Rows = list[dict[str, Any]]
GUARDED = ("training.collapse.wasted_patience=2", "lr=1e-6")


def collapse_message(prepared: Prepared) -> str:
    with pytest.raises(CollapsedError) as ended:
        advance(prepared, prepared.run.config.seeds[0], 4, lambda _: None)
    assert isinstance(ended.value, RC1Error), "exit code 2"
    return str(ended.value)


def test_run_of_cut_episodes_ends_with_a_checkpoint_and_continues_under_more_patience(tiny: Tiny) -> None:
    run = tiny(*GUARDED)
    base_that_rambles(run)
    prepared = prepare(run)
    message = collapse_message(prepared)
    assert " step 2 of 4: " in message and " 50% (max_clip_ratio), 2 steps" in message
    assert message.endswith("No checkpoint of an earlier step is left")
    metrics = MetricsLog(run.workspace.path("reports/metrics.jsonl"))
    assert len(metrics.read()) == load_checkpoint(run.workspace.path("checkpoints/rc1/step_00002")).step == 2
    assert collapse_message(prepared) == message and len(metrics.read()) == 2, "a further step was trained"
    patient = prepare(tiny(*GUARDED, "training.collapse.wasted_patience=5"))
    assert advance(patient, run.config.seeds[0], 4, lambda _: None).name == "step_00004"


@pytest.mark.parametrize("engine", ["torch_ppo", "torch_grpo"])
def test_run_of_equal_rewards_ends_but_a_control_does_not(tiny: Tiny, pool: Rows, engine: str) -> None:
    run = tiny(*GUARDED, SURE, *ENGINES[engine], "training.control.steps=2")
    base_that_says(run, SAYS_YES, pool)
    prepared = prepare(run)
    wrong = [row for row in prepared.selection.train if row["answer"] != "yes" and not row["needs_clarification"]]
    prepared = replace(prepared, selection=replace(prepared.selection, train=wrong))
    assert "(min_scores_std)" in collapse_message(prepared)
    control = prepared.under(Control("constant"))
    assert advance(control, run.config.seeds[0], 2, lambda _: None).name == "step_00002"
