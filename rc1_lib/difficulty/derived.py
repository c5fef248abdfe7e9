"""Artifacts of this room: the difficulty metrics of the pool's rows, and the balanced pool."""

from __future__ import annotations

from typing import Any

from rc1_lib.provenance.derived import Artifact, file_input
from rc1_lib.run import Run


def _target(run: Run) -> dict[str, Any]:
    config = run.config
    return {"target": dict(config.difficulty.target), "mix": dict(config.datasets), "seed": config.pool.seed}


_POOL = file_input("pool", lambda run: run.config.pool.path)
_METRICS = file_input("metrics", lambda run: run.config.difficulty.metrics_path)
METRICS = Artifact(
    "metrics", lambda run: run.config.difficulty.metrics_path, lambda _: {}, "rc1_lib.difficulty.steps.write_metrics",
    "rc1 difficulty-metrics", (_POOL,), vouched=True,
)  # fmt: skip
BALANCED = Artifact(
    "balanced", lambda run: run.config.difficulty.balanced_path, _target, "rc1_lib.difficulty.steps.write_balanced",
    "rc1 difficulty-bucketize", (_POOL, _METRICS), vouched=True,
)  # fmt: skip
