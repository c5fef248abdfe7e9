"""Trials on random weights in processes of their own, whose memory nothing else has touched."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.run import Run, open_run

SMALL = (
    "training.trial.narrower=8", "training.trial.layers=2", "training.trial.steps=2", "training.threads=1",
    "training.limits.turns=1", "batch_size=4", "rollout_len=8", "training.ppo.minibatches=2", "lr=1e-3",
    "training.checkpoints.every_steps=1", "training.eval_shadow.every_steps=1",
)  # fmt: skip
"""The published configuration at an eighth of its base's width, with as little else as shows what is asked."""


def published(workspace: Path, *overrides: str) -> Run:
    """The published configuration, so small that a step takes seconds."""
    return open_run(profile="prod", workspace=workspace, overrides=(*SMALL, *overrides))


def embedded(workspace: Path, *overrides: str) -> Run:
    """The embedded default with a few short episodes, in one process."""
    few = ("training.trial.steps=1", "batch_size=16", "rollout_len=16", "training.processes=1")
    return open_run(profile="local", workspace=workspace, overrides=(*few, *overrides))


def main(profile: str, workspace: str) -> None:
    """Run one."""
    from rc1_lib.training.trial.trial import run_trial

    run_trial({"prod": published, "local": embedded}[profile](Path(workspace)))
