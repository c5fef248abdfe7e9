"""The engine's own metrics on held-out rows, now and then: no gate, a look at whether learning generalises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rc1_lib.config.step_metrics import HELD_OUT
from rc1_lib.training.callbacks.quiet import Quiet

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


def look_is_due(trainer: Trainer, every: int) -> bool:
    """Whether held-out rows are looked at after this step: every n-th, and the last that is configured."""
    return trainer.step % every == 0 or trainer.step == trainer.max_steps


class EvalShadow(Quiet):
    """Adds `eval/<metric>` to the metrics of every step that a look is due after."""

    name = "eval_shadow"

    def __init__(self, batches: Sequence[dict[str, Any]], every: int) -> None:
        """Look at all of `batches` every `every` steps."""
        assert batches and every >= 1
        self._batches, self._every = batches, every

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Measure where it is time."""
        if not look_is_due(trainer, self._every):
            return
        sums: dict[str, float] = defaultdict(float)
        tokens = 0.0
        for batch in self._batches:
            found = trainer.engine.eval_step(batch)
            weight = found.pop("tokens")
            tokens += weight
            for name, value in found.items():
                sums[name] += value * weight  # means per token: batches count by their tokens
        assert tokens > 0, "held-out rows without a token to predict"
        metrics.update({HELD_OUT + name: total / tokens for name, total in sums.items()})
