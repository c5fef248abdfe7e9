"""Reading a small local configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rc1_lib.config_file import read_model
from rc1_lib.training.train_config import TrainConfig


def load_train_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read `path`, apply dotted overrides (`a.b=c`, values in YAML syntax) and validate.

    Raises:
        ConfigError: naming the file and the key, what was found and what is expected.
    """
    return read_model(TrainConfig, path, overrides, "run.max_steps=20")
