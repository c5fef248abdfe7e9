"""Learning from the pool's own dialogues: rows become demonstrations."""

from __future__ import annotations

from typing import Any

from rc1_lib.training.api import Engine
from rc1_lib.training.player import player_for
from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.batch import Demonstration


class Demonstrations:
    """Adds the dialogues of a batch's rows as tokens, `demonstrations`.

    No row is solved or not, so that none comes again before its turn: a step's rows are passes over the pool alone.
    """

    def attach_engine(self, engine: Engine[Any]) -> None:
        """Takes an engine with a chat format.

        Raises:
            ConfigError: when the engine has none.
        """
        self._form = player_for("demonstrations", engine).playground.form

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Encode the batch's `rows`; returns how many there are, and how many of their tokens are learned."""
        with span(Part.ENCODE):
            encoded = [(row["id"], *self._form.dialogue_ids(row["messages"])) for row in batch["rows"]]
        found = [Demonstration(str(row_id), ids, own) for row_id, ids, own in encoded]
        batch["demonstrations"] = found
        return {"rows": float(len(found)), "label_tokens": float(sum(sum(one.own) for one in found))}
