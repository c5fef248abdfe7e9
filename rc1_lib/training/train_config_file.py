"""Reading a small local configuration: overrides, and errors that name the key, what was found and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from rc1_lib.config_file import read_yaml
from rc1_lib.errors import ConfigError
from rc1_lib.training.train_config import SECTIONS, TrainConfig


def load_train_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read `path`, apply dotted overrides (`a.b=c`, values in YAML syntax) and validate.

    Raises:
        ConfigError: naming the file and the key, what was found and what is expected.
    """
    tree = read_yaml(path)
    for override in overrides:
        _apply(tree, override)
    try:
        return TrainConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{path}: " + "; ".join(_problem(dict(item)) for item in error.errors())) from None


def _apply(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    *parents, leaf = key.strip().split(".")
    if not separator or not leaf:
        raise ConfigError(f"--set {override}: expected KEY=VALUE with a dotted key, for example --set run.max_steps=20")
    node: Any = tree
    for parent in parents:
        node = node.get(parent) if isinstance(node, dict) else None
        if not isinstance(node, dict):
            raise ConfigError(f"--set {override}: there is no section '{parent}'; sections are {', '.join(SECTIONS)}")
    try:
        node[leaf] = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(f"--set {override}: '{text}' is not a YAML value") from None


def _problem(item: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in item["loc"]) or "(top level)"
    match item["type"]:
        case "extra_forbidden":
            near = difflib.get_close_matches(where, SECTIONS, n=1) if len(item["loc"]) == 1 else []
            return f"unknown key '{where}'" + (f"; did you mean '{near[0]}'?" if near else "")
        case "missing":
            return f"the key '{where}' is missing"
        case "value_error":
            return f"{where}: {item['ctx']['error']}"
        case _:
            return f"{where}: found {str(item['input'])[:80]!r}, expected: {item['msg']}"
