"""Track a run in MLflow."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
"""Disable telemetry. Allow MLflow's file store, which is in maintenance mode; users can configure a database."""
_PARAMETER = 500
"""Most characters of a parameter that every MLflow store accepts."""


class Run:
    """A run in MLflow's file store. A resumed training continues it."""

    def __init__(self, folder: Path, project: str, title: str, key: str, settings: Mapping[str, Any]) -> None:
        """Find or create the run in `folder`/mlflow."""
        for variable, value in _QUIET.items():
            os.environ.setdefault(variable, value)
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._metric: Any = Metric
        uri = os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlflow").resolve().as_uri()
        self._client: Any = MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name(project)
        experiment = known.experiment_id if known else self._client.create_experiment(project)
        found = self._client.search_runs([experiment], f"tags.rc1 = '{key}'")
        if found:
            self._id: str = found[0].info.run_id
            return
        self._id = self._client.create_run(experiment, run_name=title, tags={"rc1": key}).info.run_id
        self._client.log_batch(self._id, params=[Param(name, text) for name, text in _flat(settings)])

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        # The store makes a folder of each slash, which would clash: there are metrics `loss` and `loss/policy_avg`.
        named = [(name.replace("/", "."), value) for name, value in numbers.items()]
        now = int(time.time() * 1000)
        self._client.log_batch(self._id, metrics=[self._metric(name, value, now, step) for name, value in named])

    def close(self) -> None:
        """Mark the run as finished."""
        self._client.set_terminated(self._id)


def _flat(tree: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Flatten a tree to dotted names and short texts."""
    found: list[tuple[str, str]] = []
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((f"{before}{name}", str(value)[:_PARAMETER]))
    return found
