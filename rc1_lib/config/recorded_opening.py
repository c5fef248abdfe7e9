"""The record of how a run was opened, inside its effective configuration: `--config` with that file reopens it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rc1_lib.config.file import dump_config, flatten, load_config, read_yaml
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.errors import ConfigError
from rc1_lib.masking import mask, secrets
from rc1_lib.workspace.artifacts import Workspace
from rc1_lib.workspace.input_files import read_regular

_HEAD = "# The effective configuration of the latest run, written by RC1."
_RECORD = "# --config with this file opens that run again: "
_SHOWN = 3
"""Differing keys that an error names, at most."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The configuration and overrides of a run.

    Attributes:
        config: its file, relative to the workspace or the project.
        overrides: applied to it, in order.
    """

    config: str
    overrides: tuple[str, ...]


def head(workspace: Workspace, config: Path, overrides: Sequence[str], hidden: Sequence[str]) -> str:
    """Return the comment above an effective configuration.

    It records how the run was opened, unless that contains a secret or the private path of a file outside workspace
    and project.

    Args:
        workspace: the run's workspace.
        hidden: texts to mask (see `masking.secrets`).
    """
    name = workspace.name(config)
    record = json.dumps({"config": name, "overrides": list(overrides)})
    if workspace.find(name).resolve() == config and mask(record, hidden) == record:
        return f"{_HEAD}\n{_RECORD}{record}\n"
    return f"{_HEAD} Overrides: {mask(', '.join(overrides) or 'none', hidden)}\n"


def is_unrecorded(path: Path) -> bool:
    """Return whether `path` is an effective configuration without a record."""
    try:
        return read_regular(path).startswith(_HEAD.encode()) and opening_of(path) is None
    except OSError:
        return False


def opening_of(path: Path) -> Opening | None:
    """Return the record in an effective configuration; None if it has no record or does not exist."""
    try:
        lines = read_regular(path).decode().splitlines()
        line = next((line for line in lines[:2] if line.startswith(_RECORD)), None)
        record = None if line is None else json.loads(line.removeprefix(_RECORD))
        return None if record is None else Opening(str(record["config"]), tuple(map(str, record["overrides"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_recorded(path: Path, config: Path, opening: Opening) -> None:
    """Reject an effective configuration that does not match its own record.

    Args:
        config: the file with which the run was opened.

    Raises:
        ConfigError: names the first keys that differ, and what to do.
    """
    says = flatten(read_yaml(path))
    makes = flatten(parse_yaml(dump_config(load_config(config, opening.overrides), secrets())))
    keys = [key for key in {**says, **makes} if says.get(key) != makes.get(key)]
    if keys:
        found = ", ".join(f"{key} is {says.get(key)}, {config.name} makes {makes.get(key)}" for key in keys[:_SHOWN])
        raise ConfigError(
            f"{path}: does not match {opening.config} with the settings in its second line ({found}), so one of the "
            f"two files has changed; use --config {opening.config} and --set, or copy this file to another name to "
            f"use it as it is"
        )
