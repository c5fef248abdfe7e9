"""The cap on what a seed's training may take: at it a run pauses with a checkpoint, until a ticket holds a higher one.

What was spent is read off the metrics, a line a step, and not off checkpoints: two equal runs have the same of those.
Steps that a killed process has to train again count once, and what their judge was paid is with their scores, so
that it counts although the line, or the asking itself, was lost. What was paid for looking whether the judge has
changed is seen in the usage log of these looks, every one of which was paid for by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.config.curriculum import Cap
from rc1_lib.errors import RC1Error
from rc1_lib.training.api import Callback
from rc1_lib.training.callbacks.logs import SECONDS, MetricsLog
from rc1_lib.training.checkpoint.manifest import folder_name

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer

USD = "costs/judge_usd"
"""The metric of a step that says what its judge was paid."""


class PausedError(RC1Error):
    """A run that has reached its cap: what it has learned is kept, and it goes on under a higher one."""


def paused_at(step: int, steps: int, reason: str, folder: Path) -> PausedError:
    """What to say of a run that has stopped before its segment's end, at a step whose checkpoint `folder` holds."""
    kept = f"What was learned is kept in {folder.name}/{folder_name(step)}. To go on from there"
    begin = "Nothing was learned yet. To begin"
    return PausedError(
        f"paused at step {step} of {steps}: {reason}. {kept if step else begin} raise the cap, run the preflight again "
        f"for a ticket that holds it, and train again"
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


class SpendingCap(Callback):
    """Ends training at the cap; it comes after the callback that writes the metrics, and before the checkpoints."""

    name = "cap"

    def __init__(self, cap: Cap, metrics: Path, looks: Callable[[], float] = lambda: 0.0) -> None:
        """Under this cap, for the run whose metrics lie there; `looks` gives the USD paid besides its steps."""
        self._cap, self._log, self._looks, self._spent = cap, MetricsLog(metrics), looks, Spent()

    def reached(self, step: int) -> str:
        """Which bound a run has reached that goes on after this step, in words; "" where none is."""
        return self._spent_until(step).reaches(self._cap)

    def on_start(self, trainer: Trainer) -> None:
        """A run that has reached its cap does no further step."""
        self._spent = self._spent_until(trainer.step)
        self._judge(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Count the step."""
        self._spent = self._spent.and_a_step(metrics)
        if trainer.stop_reason is None and trainer.step < trainer.max_steps:
            self._judge(trainer)

    def _spent_until(self, step: int) -> Spent:
        spent = spent_in(self._log.read(), step)
        return replace(spent, usd=spent.usd + self._looks())

    def _judge(self, trainer: Trainer) -> None:
        if reason := self._spent.reaches(self._cap):
            trainer.stop(reason)
