"""Where training writes, relative to the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import Workspace

CHECKPOINTS = "checkpoints/rc1"
SFT = "checkpoints/sft"
CONTROLS = "checkpoints/controls"
LEDGER = "reports/ckpt_manifest.jsonl"
LOG = "logs/train.log"
METRICS = "reports/metrics.jsonl"
TENSORBOARD = "logs/tensorboard"
TRACKERS = "logs"
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


def check_small_output(workspace: Workspace, output_dir: str) -> None:
    """Refuse a small local run that would write among RC1's own checkpoints: it asks for no ticket.

    Raises:
        ConfigError: naming the folder, also where a link leads there.
    """
    target, home = workspace.path(output_dir), workspace.path(CHECKPOINTS).parent
    own = [home / Path(name).name for name in (CHECKPOINTS, SFT, CONTROLS)]
    own += home.glob(f"{Path(CHECKPOINTS).name}-*")  # of further seeds
    if any(target.is_relative_to(folder) or target.resolve().is_relative_to(folder.resolve()) for folder in own):
        raise ConfigError(
            f"run.output_dir: '{output_dir}' is among the checkpoints of RC1's own training, which only a ticket "
            f"opens; name another folder, such as checkpoints/local"
        )
