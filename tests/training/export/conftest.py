"""A policy that was trained, evaluated and exported once per session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rc1_lib.evaluation.policies import evaluate_run
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.export.checkpoint_export import export_checkpoint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.workspace.artifacts import write_json
from tests.once import copy_of
from tests.training.tiny_world import tiny_run

Exported = tuple[Run, Path]
OVERRIDES = ("steps=2", "gates.shared.resamples=20")


@pytest.fixture(scope="session")
def exported(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A run after its training and evaluation, and the folder of its export. Never write into it."""

    def make(root: Path) -> None:
        shutil.copytree(tiny_workspace, root, dirs_exist_ok=True)
        run = tiny_run(root, *OVERRIDES)
        prepared, seed = prepare(run), run.config.seeds[0]
        checkpoint = advance(prepared, seed, 2, lambda _: None)
        evaluated = evaluate_run(prepared, {seed: fingerprint(checkpoint)})
        write_json(root / "reports/train.json", {"evaluation": evaluated.report})
        export_checkpoint(run, checkpoint, root / "policy", 2)

    root = copy_of("exported", make, tmp_path_factory)
    return tiny_run(root, *OVERRIDES), root / "policy"
