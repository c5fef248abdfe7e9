"""Reading a small local configuration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rc1_lib.config.file import read_model
from rc1_lib.training.train_config import TrainConfig


def load_train_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read `path`, apply `BASE_MODEL` and dotted overrides (`a.b=c`, values in YAML syntax), and validate.

    Raises:
        ConfigError: naming the file and the key, what was found and what is expected.
    """
    base = os.environ.get("BASE_MODEL")
    return read_model(TrainConfig, path, (*([f"model.base={base}"] if base else []), *overrides), "run.max_steps=20")
