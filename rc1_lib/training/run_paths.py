"""Where training writes, relative to the workspace."""

from __future__ import annotations

from dataclasses import dataclass

from rc1_lib.artifacts import Workspace
from rc1_lib.run import Run

CHECKPOINTS = "checkpoints/rc1"
LEDGER = "reports/ckpt_manifest.jsonl"
LOG = "logs/train.log"
METRICS = "reports/metrics.jsonl"
TENSORBOARD = "logs/tensorboard"
_METRICS_BESIDE = "reports/metrics-local.jsonl"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Where the files of a run lie."""

    checkpoints: str
    metrics: str
    tensorboard: str


def paths_of(run: Run, seed: int) -> RunPaths:
    """The first seed of the configuration has the plain names, the others carry their number."""
    tail = "" if seed == run.config.seeds[0] else f"-{seed}"
    return RunPaths(f"{CHECKPOINTS}{tail}", METRICS.replace(".jsonl", f"{tail}.jsonl"), f"{TENSORBOARD}/rc1{tail}")


def small_metrics(workspace: Workspace) -> str:
    """Where a small local run writes its metrics: never over those that the evaluation draws."""
    return _METRICS_BESIDE if workspace.path(CHECKPOINTS).is_dir() else METRICS
