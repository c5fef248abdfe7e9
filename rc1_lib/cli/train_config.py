"""The small local configuration, where a command takes it in the place of a run's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.cli.session import Session
from rc1_lib.errors import ConfigError

if TYPE_CHECKING:
    from rc1_lib.training.train_config import TrainConfig


def train_config_file(session: Session) -> Path | None:
    """The small local configuration that --config names; None for one of RC1's own, or one that cannot be read.

    Raises:
        ConfigError: when a profile, or sources, are asked for as well.
    """
    given = session.options.config
    if given is None:
        return None
    from rc1_lib.config.file import merged, read_layers
    from rc1_lib.training.train_config import is_train_config

    path = given if given.is_absolute() or given.exists() else session.workspace.find(str(given))
    if not path.is_file() or not is_train_config(merged(read_layers(path))):
        return None
    for flag in ("profile", "sources"):
        if getattr(session.options, flag) is not None:
            raise ConfigError(f"--{flag}: {path.name} has none; leave it out")
    session.overrides = session.common = session.options.overrides
    return path


def read_train_config(session: Session, path: Path) -> TrainConfig:
    """The small local configuration with `--set` applied.

    Raises:
        ConfigError: naming the file and the key, what was found and what is expected.
    """
    from rc1_lib.training.train_config import load_train_config

    return load_train_config(path, session.options.overrides)
