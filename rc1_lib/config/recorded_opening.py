"""How a run was opened, as its effective configuration records it: `--config` with that file opens the run again."""

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
from rc1_lib.workspace.regular_files import read_regular

_HEAD = "# The effective configuration of the latest run, written by RC1."
_RECORD = "# --config with this file opens that run again: "
_SHOWN = 3
"""Keys that are named where a file and its record differ."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a run was opened with.

    Attributes:
        config: its file, relative to the workspace or the project.
        overrides: what was applied to that, in order.
    """

    config: str
    overrides: tuple[str, ...]


def head(workspace: Workspace, config: Path, overrides: Sequence[str], hidden: Sequence[str]) -> str:
    """The comment above an effective configuration.

    It records the opening where that can be repeated: not with a secret in it, and not of a file that lies outside both
    the workspace and the project, whose path is nobody else's business.

    Args:
        workspace: of the run.
        config: its file.
        overrides: what was applied to that.
        hidden: what is masked (see `masking.secrets`).
    """
    name = workspace.name(config)
    record = json.dumps({"config": name, "overrides": list(overrides)})
    if workspace.find(name).resolve() == config and mask(record, hidden) == record:
        return f"{_HEAD}\n{_RECORD}{record}\n"
    return f"{_HEAD} Overrides: {mask(', '.join(overrides) or 'none', hidden)}\n"


def opening_of(path: Path) -> Opening | None:
    """What an effective configuration records; None where it records nothing, or there is no such file."""
    try:
        lines = read_regular(path).decode().splitlines()
        line = next((line for line in lines[:2] if line.startswith(_RECORD)), None)
        told = None if line is None else json.loads(line.removeprefix(_RECORD))
        return None if told is None else Opening(str(told["config"]), tuple(map(str, told["overrides"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_recorded(path: Path, config: Path, opening: Opening) -> None:
    """Refuse an effective configuration that says something else than what it records.

    Args:
        path: the effective configuration.
        config: where the file lies that the run was opened with.
        opening: what it records.

    Raises:
        ConfigError: naming the first keys that differ, and what to do.
    """
    says = flatten(read_yaml(path))
    makes = flatten(parse_yaml(dump_config(load_config(config, opening.overrides), secrets())))
    keys = [key for key in {**says, **makes} if says.get(key) != makes.get(key)]
    if keys:
        told = ", ".join(f"{key} is {says.get(key)}, {config.name} makes {makes.get(key)}" for key in keys[:_SHOWN])
        raise ConfigError(
            f"{path}: is no longer what {opening.config} makes with the settings in its second line ({told}); one "
            f"of the two has changed; give --config {opening.config} and --set, or copy this file to another name to "
            f"use it as it is"
        )
