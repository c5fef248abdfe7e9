"""The mark of a trial, which its base and every one of its checkpoints bear: no policy of RC1 can come of either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine, Strategy

FACT = "trial"
"""What checkpoints call it; null in those of a real run."""
RANDOM_BASE = "random base"
"""What it is in those of a trial on random weights."""
RECORD = "trial.json"
"""The file that marks a base of random weights."""
METRIC = "trial/random_base"
"""1 in every line of a trial's metrics; no other run has it."""


class Marked:
    """A strategy in a trial, whose every line of metrics says so."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def attach_engine(self, engine: Engine[Any]) -> None:
        """As the strategy's."""
        self._strategy.attach_engine(engine)

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """As the strategy's, and the mark."""
        return {**self._strategy.on_batch(batch), METRIC: 1.0}


def refuse_random_base(base: str) -> None:
    """Refuse the random weights of a trial as the base of anything else.

    Raises:
        ConfigError: when `base` is a folder that bears the mark.
    """
    if (Path(base) / RECORD).is_file():
        raise ConfigError(
            f"base_model: {base} holds random weights, which rc1 train --random-base wrote to try a shape out "
            f"({RECORD} says so), and nothing is trained, evaluated or exported from them; name a real model"
        )
