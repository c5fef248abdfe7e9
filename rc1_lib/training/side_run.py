"""Runs that are tried beside a real one: what controls and trials have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import Workspace


def side_run(run: Run, folder: str, steps: int, **changed: Any) -> Run:
    """A run of its own few steps, all of them trained, with nobody to score episodes, in a workspace of its own.

    Args:
        run: the real one.
        folder: of the workspace, below that of the real run.
        steps: that it trains.
        changed: sections and keys of `training` that are others beside those.
    """
    training = run.config.training
    alone = {
        "reward": training.reward.model_copy(update={"judge": 0.0}),
        "early_stop": training.early_stop.model_copy(update={"metric": None}),
    }
    config = run.config.model_copy(
        update={"steps": steps, "training": training.model_copy(update={**alone, **changed})}
    )
    return replace(run, config=config, workspace=Workspace(run.workspace.path(folder)))
