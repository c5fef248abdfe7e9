"""Where training writes, relative to the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rc1_lib.config.recorded_opening import is_unrecorded
from rc1_lib.errors import ConfigError
from rc1_lib.run import EFFECTIVE, Run, recorded_config
from rc1_lib.workspace.artifacts import Workspace

CHECKPOINTS = "checkpoints/rc1"
SFT = "checkpoints/sft"
SFT_UNFINISHED = f"{SFT}.unfinished"
"""Checkpoints of a warm start that is not done, the newest alone."""
CONTROLS = "checkpoints/controls"
LEDGER = "reports/ckpt_manifest.jsonl"
LOG = "logs/train.log"
METRICS = "reports/metrics.jsonl"
TENSORBOARD = "logs/tensorboard"
TRACKERS = "logs"
_METRICS_BESIDE = "reports/metrics-local.jsonl"
_EFFECTIVE_BESIDE = "reports/config_effective-local.yaml"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Where the files of a run are."""

    checkpoints: str
    metrics: str
    tensorboard: str


def paths_of(run: Run, seed: int) -> RunPaths:
    """Return the paths of a seed. The first configured seed has the plain names, others append their number."""
    tail = "" if seed == run.config.seeds[0] else f"-{seed}"
    return RunPaths(f"{CHECKPOINTS}{tail}", METRICS.replace(".jsonl", f"{tail}.jsonl"), f"{TENSORBOARD}/rc1{tail}")


def small_metrics(workspace: Workspace) -> str:
    """Return the metrics file of a small local run. It never replaces metrics that the evaluation plots."""
    return _METRICS_BESIDE if workspace.path(CHECKPOINTS).is_dir() else METRICS


def small_effective(workspace: Workspace) -> str:
    """Return the file of a small local run's settings. It never replaces those that RC1 recorded for its ticket."""
    others = recorded_config(workspace.root) or is_unrecorded(workspace.path(EFFECTIVE))
    return _EFFECTIVE_BESIDE if others else EFFECTIVE


def check_small_output(workspace: Workspace, output_dir: str) -> None:
    """Reject a small local run that would write into RC1's own checkpoints, because it has no ticket.

    Raises:
        ConfigError: if the output folder is in one of them, also through a link.
    """
    target, home = workspace.path(output_dir), workspace.path(CHECKPOINTS).parent
    own = [home / Path(name).name for name in (CHECKPOINTS, SFT, SFT_UNFINISHED, CONTROLS)]
    own += home.glob(f"{Path(CHECKPOINTS).name}-*")  # of further seeds
    if any(target.is_relative_to(folder) or target.resolve().is_relative_to(folder.resolve()) for folder in own):
        raise ConfigError(
            f"run.output_dir: '{output_dir}' is inside the checkpoints of RC1's own training, which needs a ticket; "
            f"use another folder, such as checkpoints/local"
        )
