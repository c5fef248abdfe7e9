"""An evaluation plays each policy once, the initial one once for all seeds, and repeats with the same result."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from rc1_lib.evaluation.policies import evaluate_run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.tiny_world import tiny_run

SHORT = (
    "steps=2", "training.segment_steps=1", "training.checkpoints.every_steps=1", "rollout_len=8",
    "training.rollout.rows=12", "gates.shared.resamples=20",
)  # fmt: skip
"""An intermediate checkpoint, and short turns."""


def test_initial_policy_is_evaluated_once_for_all_seeds(
    tiny_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(tiny_workspace, tmp_path / "workspace")
    torch.set_num_threads(1)
    prepared = prepare(tiny_run(root, *SHORT))
    config, played, play = prepared.run.config, list[int](), Playground.play

    def counting(self: Playground, model: Any, rows: Any, keys: Any, **how: Any) -> list[Trajectory]:
        played.append(len(rows))
        return play(self, model, rows, keys, **how)

    seeds = config.seeds[:2]
    finished = {seed: fingerprint(advance(prepared, seed, config.steps, lambda _: None)) for seed in seeds}
    monkeypatch.setattr(Playground, "play", counting)
    found = evaluate_run(prepared, finished)
    prompts = len(prepared.selection.held_out)
    intermediate = min(config.training.held_out.between.prompts, prompts)
    policies, modes = 1 + len(seeds), 2
    assert played == [prompts] * modes * policies + [intermediate] * len(seeds)
    # The report's name has a hash of provenance and results.
    assert evaluate_run(prepared, finished).report == found.report
