"""Learning from dialogues that are given: the pool's own in a run, rows of a file elsewhere."""

from __future__ import annotations

from typing import Any

from rc1_lib.training.api import Engine
from rc1_lib.training.player import player_for
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import Demonstration


class Demonstrations:
    """Adds the dialogues of a batch's rows as tokens, `demonstrations`; rows of a file come as such.

    No row is solved or not, so that none comes again before its turn: a step's rows are passes over the pool alone.
    """

    def attach_engine(self, engine: Engine) -> None:
        """Takes any engine; the pool's dialogues need one with a chat format."""
        self._engine = engine

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Encode the batch's `rows`; returns how many there are, and how many of their tokens are learned.

        Raises:
            ConfigError: when the engine has no chat format.
        """
        if "demonstrations" not in batch:
            form = player_for("demonstrations", self._engine).playground.form
            with span(Part.ENCODE):
                encoded = [(row["id"], *form.dialogue_ids(row["messages"])) for row in batch["rows"]]
            batch["demonstrations"] = [Demonstration(str(row_id), ids, own) for row_id, ids, own in encoded]
        found = batch["demonstrations"]
        return {"rows": float(len(found)), "label_tokens": float(sum(sum(one.own) for one in found))}
