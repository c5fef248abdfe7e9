"""Trackers: where metrics go besides a run's own files. Each is an optional extra (`rc1_lib.extras.trackers`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from rc1_lib.config.curriculum import Tracker as Name
from rc1_lib.config.curriculum import Tracking
from rc1_lib.errors import ConfigError
from rc1_lib.masking import mask_tree, secrets
from rc1_lib.workspace.artifacts import sha256_json

_PACKAGE: Mapping[Name, str] = {"wandb": "wandb", "mlflow": "mlflow-skinny"}
"""Tracker -> package to install. The extra of RC1 has the tracker's name."""
_MODULE: Mapping[Name, str] = {name: f"rc1_lib.extras.trackers.{name}" for name in _PACKAGE}
"""Module of each tracker, imported only if a run uses it, because the core does not depend on the extras."""


class Tracker(Protocol):
    """Receives the metrics of one run."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        ...

    def close(self) -> None:
        """Write what is still buffered."""
        ...


Open = Callable[[Mapping[str, Any]], Tracker]
"""Opens a tracker for the run with these facts (`Trainer.facts`)."""


PROJECT = "rc1"
"""The project or experiment to which runs belong."""


def check_trackers(tracking: Tracking) -> None:
    """Check that the packages of the configured trackers are installed.

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
    """Return functions that open the configured trackers.

    Args:
        folder: where they write.
        title: of the run, for people.

    Raises:
        ConfigError: if a package is missing.
    """
    check_trackers(tracking)

    def opens(name: Name) -> Open:
        made: Callable[..., Tracker] = import_module(_MODULE[name]).Run
        return lambda facts: made(folder, PROJECT, title, _id(facts), _settings(facts))

    return [opens(name) for name in tracking.to]


def _is_there(name: Name) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    return find_spec(name) is not None


def _id(facts: Mapping[str, Any]) -> str:
    """Derive a run's id from its facts, so that it is the same after a kill."""
    return sha256_json({name: fact for name, fact in facts.items() if name != "process"})[:12]


def _settings(facts: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = mask_tree(facts.get("config", {}), secrets())
    return settings
