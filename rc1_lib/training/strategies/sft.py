"""Supervised fine-tuning: the batch is learned from as it is."""

from __future__ import annotations

from typing import Any

from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine


class SFT:
    """Learns the `labels` of every batch."""

    def attach_engine(self, engine: Engine[Any]) -> None:
        """Takes any engine: it needs nothing of it beyond `train_step`."""

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Counts what there is to learn.

        Raises:
            ConfigError: when the batch has no labels, so that another strategy is meant.
        """
        if "labels" not in batch:
            raise ConfigError("strategy.name: found 'sft', but the batches of this engine carry no labels; take 'ppo'")
        return {"rows": float(len(batch["labels"])), "label_tokens": float((batch["labels"][:, 1:] != -100).sum())}
