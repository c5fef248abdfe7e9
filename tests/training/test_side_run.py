"""Runs beside a real one: nobody is asked, every step is trained, and nothing of the real one's is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.run import Run, open_run
from rc1_lib.training.control import Control, controlled
from rc1_lib.training.side_run import side_run
from rc1_lib.training.trial.trial import _beside as tried


@pytest.mark.parametrize("made", ["control", "trial", "plain"])
def test_what_is_tried_beside_a_run_asks_nobody_and_trains_all_of_its_steps(tmp_path: Path, made: str) -> None:
    stops = ("training.eval_shadow.every_steps=2", "training.early_stop.metric=eval/env/success")
    run = open_run(profile="local", workspace=tmp_path, overrides=[*stops, "training.control.steps=24", "steps=48"])
    beside: Run = {
        "control": lambda: controlled(run, Control("random")),
        "trial": lambda: tried(run),
        "plain": lambda: side_run(run, "checkpoints/elsewhere", 3, languages=("zh",)),
    }[made]()
    training = beside.config.training
    assert run.config.training.reward.judge > 0 and training.reward.judge == 0
    assert run.config.training.early_stop.metric is not None and training.early_stop.metric is None
    assert training.reward.success == run.config.training.reward.success
    assert beside.config.steps == {"control": 24, "trial": run.config.training.trial.steps, "plain": 3}[made]
    assert beside.workspace.root != run.workspace.root and beside.workspace.root.is_relative_to(run.workspace.root)
    assert training.languages == {"control": run.config.training.languages, "trial": ("en",), "plain": ("zh",)}[made]
