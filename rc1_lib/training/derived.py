"""What training is given, and what it derives. Nothing in here imports torch before it is asked to look."""

from __future__ import annotations

from typing import Any

from rc1_lib.artifacts import FileState, sha256_folder
from rc1_lib.derived import Artifact, Given, Input, file_input
from rc1_lib.run import Run
from rc1_lib.training.run_paths import CHECKPOINTS, SFT


def _settings(run: Run) -> dict[str, Any]:
    training = run.config.training
    return {
        "warm_start": training.warm_start.model_dump(mode="json"),
        "seed": run.config.seeds[0],
        "describe_tools": training.describe_tools,
        "threads": training.threads,
    }


def _base(run: Run) -> str:
    from rc1_lib.training.models import base_name, fingerprint_of

    return fingerprint_of(run.config, base_name(run.config, run.workspace))


def _look(run: Run) -> FileState:
    from rc1_lib.training.warm_start import reference_state

    return reference_state(run)


def _look_at_latest(run: Run) -> FileState:
    from rc1_lib.training.checkpoint.load import load_checkpoint
    from rc1_lib.training.checkpoint.state import CheckpointError

    latest = CHECKPOINT.path(run)
    if not latest.exists():
        return FileState.MISSING
    try:
        values = load_checkpoint(latest.resolve()).values
    except CheckpointError:
        return FileState.ALTERED
    return FileState.FRESH if values.get("code") == CHECKPOINT.code else FileState.STALE


BASE = Given("base", lambda run: run.config.base_model, sha256_folder, only_folders=True)
"""A base that is on the hub has no bytes here; its commit is among the facts of every checkpoint."""
REFERENCE = Artifact(
    "reference", lambda _: SFT, _settings, "rc1_lib.training.warm_start.reference_of", "rc1 train",
    (Input("base", _base), file_input("balanced", lambda run: run.config.seed_pool)),
    reached_by_name=("rc1_lib.training.engines",), look=_look,
)  # fmt: skip
"""Which rows of the pool it learned from stands in its record too; a model's own tokenizer decides that."""
CHECKPOINT = Artifact(
    "checkpoint", lambda _: f"{CHECKPOINTS}/latest", None, "rc1_lib.training.ppo_run.advance", "rc1 train",
    reached_by_name=("rc1_lib.training.engines", "rc1_lib.training.strategies"), look=_look_at_latest,
)  # fmt: skip
"""What decides its bytes stands in it; `Prepared.facts` are those of a run that would go on from it."""
