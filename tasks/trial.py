"""A trial on random weights as a Prefect task; what the UI shows of it says what it is."""

from __future__ import annotations

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
"""Metric -> the head of its column."""


@retried(name="trial", task_run_name="TRIAL on random weights")
@refusable
def trial(run: Run) -> dict[str, Any]:
    """Train a few steps on random weights; gives the report."""
    report = run_trial(run, get_run_logger().info)
    figures = ([f"{step[name]:,.4g}" for name in _FIGURES] for step in report["steps"])
    rows = ([*_FIGURES.values()], ["---:"] * len(_FIGURES), *figures)
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    create_markdown_artifact(
        key="rc1-trial",
        markdown=f"# TRIAL, no policy\n\n{report['base_model']}: {SAYS}\n\n{table}\n",
        description=f"TRIAL: {SAYS}",
    )
    return report
