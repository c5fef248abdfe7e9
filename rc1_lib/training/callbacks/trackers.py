"""Metrics for Weights & Biases and MLflow, where they are installed: written below the workspace, sent nowhere.

Both are offline unless their own variables say otherwise: `WANDB_MODE`, `MLFLOW_TRACKING_URI`. Keys are theirs too and
are read by them alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from rc1_lib.config.curriculum import Tracker as Name
from rc1_lib.config.curriculum import Tracking
from rc1_lib.errors import ConfigError
from rc1_lib.masking import mask_tree, secrets
from rc1_lib.workspace.artifacts import sha256_json

_PACKAGE: Mapping[Name, str] = {"wandb": "wandb", "mlflow": "mlflow-skinny"}
"""Tracker -> what has to be installed; the extra of RC1 has the tracker's name."""
_QUIET = {"WANDB_ERROR_REPORTING": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
"""No report about its user goes to a maker of these. MLflow's files are in maintenance; a database is the user's."""
_PARAMETER = 500
"""Characters that every store of MLflow takes as a parameter's value."""


class Tracker(Protocol):
    """Where the metrics of one run go."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write what a step measured."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


Open = Callable[[Mapping[str, Any]], Tracker]
"""Opens a tracker for the run that these facts decide (`Trainer.facts`)."""


def check_trackers(tracking: Tracking) -> None:
    """Refuse a tracker whose package is missing.

    Raises:
        ConfigError: saying what to install.
    """
    for name in tracking.to:
        if not _is_there(name):
            raise ConfigError(
                f"tracking.to names {name}, but the package {_PACKAGE[name]} is not installed; install RC1 "
                f"with its extra '{name}': pip install 'rc1[{name}]', or leave it out"
            )


def trackers_of(tracking: Tracking, folder: Path, title: str) -> Sequence[Open]:
    """What opens each tracker of the configuration.

    Args:
        tracking: which, and under what project.
        folder: below which they write.
        title: of the run, for people.

    Raises:
        ConfigError: when a package is missing.
    """
    check_trackers(tracking)

    def opens(name: Name) -> Open:
        made: dict[Name, Callable[..., Tracker]] = {"wandb": WandB, "mlflow": MLflow}
        return lambda facts: made[name](folder, tracking.project, title, _id(facts), _settings(facts))

    return [opens(name) for name in tracking.to]


class WandB:
    """An offline run of Weights & Biases, which `wandb sync` uploads; a resumed training adds one under the same id."""

    def __init__(self, folder: Path, project: str, title: str, key: str, settings: Mapping[str, Any]) -> None:
        """Begins a run below `folder`/wandb."""
        _be_quiet()
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        silent = wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, save_code=False, disable_job_creation=True,
            x_disable_stats=True, x_disable_meta=True, x_save_requirements=False,
        )  # fmt: skip
        self._run: Any = wandb.init(
            mode=os.environ.get("WANDB_MODE") or "offline", dir=str(folder), project=project, name=title, id=key,
            resume="allow", config=dict(settings), settings=silent,
        )  # fmt: skip

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write what a step measured."""
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()


class MLflow:
    """A run in MLflow's store of files; a resumed training goes on in it."""

    def __init__(self, folder: Path, project: str, title: str, key: str, settings: Mapping[str, Any]) -> None:
        """Finds or begins the run in `folder`/mlflow."""
        _be_quiet()
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
        """Write what a step measured."""
        # To the store a slash is a folder, and beside `loss/policy_avg` there is a metric called `loss`.
        named = [(name.replace("/", "."), value) for name, value in numbers.items()]
        now = int(time.time() * 1000)
        self._client.log_batch(self._id, metrics=[self._metric(name, value, now, step) for name, value in named])

    def close(self) -> None:
        """Say that it has ended."""
        self._client.set_terminated(self._id)


def _is_there(name: Name) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    return find_spec(name) is not None


def _be_quiet() -> None:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


def _id(facts: Mapping[str, Any]) -> str:
    """Names a run by what decides it, so that it is the same one after a kill."""
    return sha256_json({name: fact for name, fact in facts.items() if name != "process"})[:12]


def _settings(facts: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = mask_tree(facts.get("config", {}), secrets())
    return settings


def _flat(tree: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Dotted names and short texts."""
    found: list[tuple[str, str]] = []
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((f"{before}{name}", str(value)[:_PARAMETER]))
    return found
