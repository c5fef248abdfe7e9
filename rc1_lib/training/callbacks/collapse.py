"""A run that is lost is ended: the KL to the start explodes, the entropy or the answers collapse, step after step.

What is not a number ends a run where it appears. These figures are numbers, and good ones at first sight: a reward may
rise while one answer is given to everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.config.curriculum import Collapse
from rc1_lib.config.step_metrics import ENTROPY, KL, SAME_ANSWER
from rc1_lib.training.callbacks.quiet import Quiet
from rc1_lib.training.diverged import CollapsedError
from rc1_lib.training.metrics_log import MetricsLog

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


def sign_of(metrics: Mapping[str, Any], bounds: Collapse) -> str:
    """The first bound that a step is beyond, in words; "" where it is within all. What was not measured is no sign."""
    kl, entropy, same = (metrics.get(name) for name in (KL, ENTROPY, SAME_ANSWER))
    if bounds.max_kl is not None and kl is not None and kl > bounds.max_kl:
        return f"the KL to the start has exploded: {kl:.3g} nats a token, at most {bounds.max_kl:g} (max_kl)"
    if bounds.min_entropy is not None and entropy is not None and entropy < bounds.min_entropy:
        return f"the entropy has collapsed: {entropy:.3g} nats a token, at least {bounds.min_entropy:g} (min_entropy)"
    if bounds.max_same_answer is not None and same is not None and same > bounds.max_same_answer:
        return (
            f"the answers have collapsed: {same:.0%} of them are one and the same, at most "
            f"{bounds.max_same_answer:.0%} (max_same_answer)"
        )
    return ""


class CollapseGuard(Quiet):
    """Ends a run behind so many steps in a row with a sign; it stands behind the metrics, and before the checkpoints.

    How many there have been is read off the metrics, so that a resumed run counts on.
    """

    name = "collapse"

    def __init__(self, bounds: Collapse, metrics: Path) -> None:
        """By these bounds, for the run whose metrics lie there."""
        self._bounds, self._log, self._in_a_row = bounds, MetricsLog(metrics), 0

    def on_start(self, trainer: Trainer) -> None:
        """Count the signs that the run has shown up to where it goes on."""
        self._in_a_row = 0
        for line in self._log.read():
            if line["step"] <= trainer.step:
                self._in_a_row = self._in_a_row + 1 if sign_of(line, self._bounds) else 0

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Look at the step.

        Raises:
            CollapsedError: when it is one too many.
        """
        sign = sign_of(metrics, self._bounds)
        self._in_a_row = self._in_a_row + 1 if sign else 0
        if self._in_a_row >= self._bounds.patience:
            since = trainer.step - self._in_a_row + 1
            raise CollapsedError(
                f"training.collapse: {sign}, {self._in_a_row} steps in a row, since step {since}: lower lr, raise "
                f"kl_coef or the update's entropy_coef, or look at what the reward pays for",
                since,
            )
