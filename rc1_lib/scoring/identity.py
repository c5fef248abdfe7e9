"""Who judges, and by which settings: what tickets, weights and reports are bound to."""

from __future__ import annotations

from typing import Any

from rc1_lib.run import Run
from rc1_lib.scoring.judge import read_spec


def judge_identity(run: Run) -> dict[str, str]:
    """Who judges, and by which words: what a ticket names.

    Raises:
        ConfigError: when the instructions are missing or damaged.
    """
    judge = run.config.judge
    return {
        "provider": judge.provider,
        "model": judge.model or "",
        "spec": judge.spec,
        "spec_sha256": read_spec(run).sha256,
    }


def scoring_settings(run: Run) -> dict[str, Any]:
    """All settings that decide what a dialogue is scored with, and whether its scores count in full."""
    judge = run.config.judge
    return {
        **judge_identity(run),
        "base_url": judge.base_url or "",
        "structured": judge.structured,
        "samples": judge.samples,
        "sampling": judge.sampling.model_dump(mode="json"),
        "max_variance": run.config.gates.stability.max_variance,
    }
