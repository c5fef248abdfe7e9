"""Held-out rows played now and then while a run trains: no gate, a look at whether learning generalises."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rc1_lib.config.curriculum import ShadowLook
from rc1_lib.config.step_metrics import HELD_OUT
from rc1_lib.environment.summary import summary
from rc1_lib.records import MeasuredRow
from rc1_lib.training.callbacks.eval_shadow import look_is_due
from rc1_lib.training.callbacks.quiet import Quiet
from rc1_lib.training.metrics_log import SECONDS
from rc1_lib.training.player import Player

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


class PlayedShadow(Quiet):
    """Adds `eval/<figure>` to the metrics of every step that a look is due after, by the policy as it then stands.

    Every look draws by the same random numbers, so that what differs between two of them is the policy. It stands
    before whatever reads a step's seconds: those of the look are among them.
    """

    name = "eval_shadow"

    def __init__(self, rows: Sequence[MeasuredRow], every: int) -> None:
        """Play all of `rows` every `every` steps."""
        assert rows and every >= 1
        self._rows, self._every = rows, every

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Play where it is time."""
        if not look_is_due(trainer, self._every):
            return
        began = time.perf_counter()
        player = trainer.engine
        assert isinstance(player, Player), "what learns from episodes plays them"
        keys = [f"{self.name}/{row['id']}" for row in self._rows]
        played = player.play(self._rows, keys, temperature=player.temperature, seed=player.seed, iteration=0)
        metrics.update({HELD_OUT + name: value for name, value in summary([one.outcome for one in played]).items()})
        metrics[SECONDS] = (metrics.get(SECONDS) or 0.0) + time.perf_counter() - began


def looks_of(rows: Sequence[MeasuredRow], look: ShadowLook) -> list[PlayedShadow]:
    """The looks that a run takes; none where none is asked for, so that its checkpoints do not name any."""
    return [] if look.every_steps is None else [PlayedShadow(rows, look.every_steps)]
