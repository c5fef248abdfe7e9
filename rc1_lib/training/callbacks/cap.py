"""The cap on the hours and cost of training a seed. A run that reaches it pauses with a checkpoint.

What was spent is read from the metrics, which have one line per step, and not from checkpoints, which must be equal for
equal runs. Steps that a killed process trains again count once. What their judge was paid is stored with their scores,
so it counts even if the line, or the process that asked, was lost. The cost of checking the judge for drift is in the
usage log of these checks, each of which was paid separately.
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
"""Metric of a step: what its judge was paid."""


class PausedError(RC1Error):
    """The run has reached its cap. Its progress is kept, and it can continue under a higher cap."""


def paused_at(step: int, steps: int, reason: str, folder: Path) -> PausedError:
    """Describe a run that stopped before the end of its segment, at a step whose checkpoint is in `folder`."""
    kept = f"What was learned is kept in {folder.name}/{folder_name(step)}. To continue"
    begin = "Nothing was learned yet. To begin"
    return PausedError(
        f"paused at step {step} of {steps}: {reason}. {kept if step else begin}, raise the cap, run the preflight "
        "again for a ticket with it, and train again"
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What steps have cost.

    Attributes:
        hours: wall-clock hours.
        usd: paid to the judge.
    """

    hours: float = 0.0
    usd: float = 0.0

    def plus_step(self, metrics: Mapping[str, Any]) -> Spent:
        """Return the sum with one more step."""
        return Spent(self.hours + (metrics.get(SECONDS) or 0.0) / 3600, self.usd + (metrics.get(USD) or 0.0))

    def reaches(self, cap: Cap) -> str:
        """Describe the bound that is reached; "" if none is."""
        if cap.hours is not None and self.hours >= cap.hours:
            return f"{self.hours:.3g} hours are used, and training.cap.hours is {cap.hours:g}"
        if cap.usd is not None and self.usd >= cap.usd:
            return f"${self.usd:.4g} are spent on the judge, and training.cap.usd is {cap.usd:g}"
        return ""


def spent_in(lines: Iterable[Mapping[str, Any]], step: int) -> Spent:
    """Sum what the steps up to `step` have cost."""
    spent = Spent()
    for line in lines:
        if line["step"] <= step:
            spent = spent.plus_step(line)
    return spent


class SpendingCap(Callback):
    """Stops training at the cap. It must come after the callback that writes the metrics and before the checkpoints."""

    name = "cap"

    def __init__(self, cap: Cap, metrics: Path, looks: Callable[[], float] = lambda: 0.0) -> None:
        """Keep the cap and the run's metrics file. `looks` returns the USD paid for anything but its steps."""
        self._cap, self._log, self._looks, self._spent = cap, MetricsLog(metrics), looks, Spent()

    def reached(self, step: int) -> str:
        """Describe the bound that a run has reached after this step; "" if none."""
        return self._spent_until(step).reaches(self._cap)

    def on_start(self, trainer: Trainer) -> None:
        """Stop a run that has already reached its cap."""
        self._spent = self._spent_until(trainer.step)
        self._judge(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Add the step's cost, and stop the run if it reaches the cap."""
        self._spent = self._spent.plus_step(metrics)
        if trainer.stop_reason is None and trainer.step < trainer.max_steps:
            self._judge(trainer)

    def _spent_until(self, step: int) -> Spent:
        spent = spent_in(self._log.read(), step)
        return replace(spent, usd=spent.usd + self._looks())

    def _judge(self, trainer: Trainer) -> None:
        if reason := self._spent.reaches(self._cap):
            trainer.stop(reason)
