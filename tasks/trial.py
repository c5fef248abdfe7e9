"""A trial on random weights as a Prefect task; what the UI shows of it says what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefect.artifacts import create_markdown_artifact
from prefect.logging import get_run_logger

from rc1_lib.run import Run
from rc1_lib.training.trial.trial import SAYS, run_trial
from tasks.endings import refusable, retried

_FIGURES = {
    "step": "step", "loss": "loss", "grad_norm": "gradient", "policy/sampling_gap": "sampling gap",
    "mem_used_mb": "MiB", "mem_estimated_mb": "MiB, estimated", "sec_per_step": "seconds",
}  # fmt: skip
"""Metric -> the head of its column; one that a step does not measure, as supervised ones sample nothing, has none."""


@retried(name="trial", task_run_name="TRIAL on random weights")
@refusable
def trial(run: Run) -> dict[str, Any]:
    """Train a few steps on random weights; gives the report."""
    report = run_trial(run, get_run_logger().info)
    create_markdown_artifact(
        key="rc1-trial",
        markdown=f"# TRIAL, no policy\n\n{report['base_model']}: {SAYS}\n\n{figures_table(report['steps'])}\n",
        description=f"TRIAL: {SAYS}",
    )
    return report


def figures_table(steps: Sequence[Mapping[str, Any]]) -> str:
    """A row for every step's metrics, as Markdown."""
    known = [name for name in _FIGURES if all(step.get(name) is not None for step in steps)]
    figures = ([f"{step[name]:,.4g}" for name in known] for step in steps)
    rows = ([_FIGURES[name] for name in known], ["---:"] * len(known), *figures)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
