"""The cap on what a seed's training may take: at it a run pauses with a checkpoint, until a ticket holds a higher one.

What was spent is read off the metrics, a line a step, and not off checkpoints: two equal runs have the same of those.
Steps that a killed process has to train again count once, and what their judge was paid stands with their scores, so
that it counts although the line was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.config_course import Cap
from rc1_lib.errors import RC1Error
from rc1_lib.training.callbacks.quiet import Quiet
from rc1_lib.training.checkpoint.names import folder_name
from rc1_lib.training.metrics_log import SECONDS, MetricsLog

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer

USD = "costs/judge_usd"
"""The metric of a step that says what its judge was paid."""


class PausedError(RC1Error):
    """A run that has reached its cap: what it has learned is kept, and it goes on under a higher one."""


def paused_at(trainer: Trainer, folder: Path) -> PausedError:
    """What to say of a run that has stopped before its segment's end."""
    return PausedError(
        f"paused at step {trainer.step} of {trainer.max_steps}: {trainer.stop_reason}. What was learned is kept in "
        f"{folder.name}/{folder_name(trainer.step)}. To go on from there raise the cap, run the preflight again for a "
        f"ticket that holds it, and train again"
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What steps took.

    Attributes:
        hours: of the clock.
        usd: paid to the judge.
    """

    hours: float = 0.0
    usd: float = 0.0

    def and_a_step(self, metrics: Mapping[str, Any]) -> Spent:
        """With one step more."""
        return Spent(self.hours + (metrics.get(SECONDS) or 0.0) / 3600, self.usd + (metrics.get(USD) or 0.0))

    def reaches(self, cap: Cap) -> str:
        """Which bound is reached, in words; "" where none is."""
        if cap.hours is not None and self.hours >= cap.hours:
            return f"{self.hours:.3g} hours are spent, and training.cap.hours is {cap.hours:g}"
        if cap.usd is not None and self.usd >= cap.usd:
            return f"${self.usd:.4g} are spent on the judge, and training.cap.usd is {cap.usd:g}"
        return ""


def spent_in(lines: Iterable[Mapping[str, Any]], step: int) -> Spent:
    """What the steps up to `step` took."""
    spent = Spent()
    for line in lines:
        if line["step"] <= step:
            spent = spent.and_a_step(line)
    return spent


class SpendingCap(Quiet):
    """Ends training at the cap; it stands behind the callback that writes the metrics, and before the checkpoints."""

    name = "cap"

    def __init__(self, cap: Cap, metrics: Path) -> None:
        """Under this cap, for the run whose metrics lie there."""
        self._cap, self._log, self._spent = cap, MetricsLog(metrics), Spent()

    def on_start(self, trainer: Trainer) -> None:
        """A run that has reached its cap does no further step."""
        self._spent = spent_in(self._log.read(), trainer.step)
        self._judge(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Count the step."""
        self._spent = self._spent.and_a_step(metrics)
        if trainer.stop_reason is None and trainer.step < trainer.max_steps:
            self._judge(trainer)

    def _judge(self, trainer: Trainer) -> None:
        if reason := self._spent.reaches(self._cap):
            trainer.stop(reason)
