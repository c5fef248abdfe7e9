"""Real runs whose steps teach nothing: each ends by its bound with a checkpoint, and goes on only under another."""

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
from tests.forecast.hopeless import MALFORMED, SAYS_YES, base_that_rambles, base_that_says
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]
Rows = list[dict[str, Any]]
GUARDED = ("training.collapse.wasted_patience=2", "lr=1e-6")


def lost(prepared: Prepared) -> str:
    with pytest.raises(CollapsedError) as ended:
        advance(prepared, prepared.run.config.seeds[0], 4, lambda _: None)
    assert isinstance(ended.value, RC1Error), "exit code 2"
    return str(ended.value)


def test_a_run_that_is_cut_ends_with_a_checkpoint_and_goes_on_under_another_bound_alone(tiny: Tiny) -> None:
    run = tiny(*GUARDED, "training.collapse.max_clip_ratio=0.5")
    base_that_rambles(run)
    prepared = prepare(run)
    words = lost(prepared)
    assert "ended at step 2 of 4: " in words and ", at most 50% (training.collapse.max_clip_ratio), 2 steps" in words
    assert words.endswith("No checkpoint was written before")
    metrics = MetricsLog(run.workspace.path("reports/metrics.jsonl"))
    assert len(metrics.read()) == load_checkpoint(run.workspace.path("checkpoints/rc1/step_00002")).step == 2
    assert lost(prepared) == words and len(metrics.read()) == 2, "nothing more is trained"
    higher = prepare(tiny(*GUARDED, "training.collapse.max_clip_ratio=1.0"))
    assert advance(higher, run.config.seeds[0], 4, lambda _: None).name == "step_00004"


def test_a_run_whose_turns_are_malformed_ends(tiny: Tiny, pool: Rows) -> None:
    run = tiny(*GUARDED, "training.collapse.max_malformed=0.5")
    base_that_says(run, MALFORMED, pool)
    assert "of the episodes have a malformed turn, at most 50% (training.collapse.max_malformed)" in lost(prepare(run))


@pytest.mark.parametrize(
    ("engine", "bound", "words"),
    [
        ("torch_ppo", "min_scores_std=0.01", "the standard deviation is 0, at least 0.01"),
        ("torch_grpo", "max_frac_zero_std=0.9", "100% of the prompts have rollouts with equal scores"),
        ("torch_dpo", "max_frac_zero_std=0.9", "100% of the prompts have rollouts with equal scores"),
    ],
)
def test_a_run_whose_rewards_are_equal_ends_but_not_a_control(
    tiny: Tiny, pool: Rows, engine: str, bound: str, words: str
) -> None:
    run = tiny(*GUARDED, *ENGINES[engine], f"training.collapse.{bound}", "training.control.steps=2")
    base_that_says(run, SAYS_YES, pool)
    prepared = prepare(run)
    wrong = [row for row in prepared.selection.train if row["answer"] != "yes" and not row["needs_clarification"]]
    prepared = replace(prepared, selection=replace(prepared.selection, train=wrong))
    assert words in lost(prepared)
    control = prepared.under(Control("constant"))
    assert advance(control, run.config.seeds[0], 2, lambda _: None).name == "step_00002"
