"""Write checkpoints on time, and of the last step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.training.api import Callback
from rc1_lib.training.callbacks.logs import TrainLog
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.checkpoint.save_load import save_checkpoint

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


@dataclass(frozen=True, slots=True)
class SaveRule:
    """How often checkpoints are written.

    Attributes:
        every_steps: at every multiple of this many steps.
        every_minutes: also when this many minutes have passed since the last one; None sets no such bound.
    """

    every_steps: int
    every_minutes: float | None

    def __post_init__(self) -> None:
        """Reject a rule that would never save."""
        assert self.every_steps >= 1, f"every_steps is {self.every_steps}, expected at least 1"
        assert self.every_minutes is None or self.every_minutes > 0, f"every_minutes is {self.every_minutes}"

    def due(self, step: int, saved_step: int, minutes_since: float) -> bool:
        """Whether to save now.

        Args:
            step: number of finished steps.
            saved_step: step of the last checkpoint (or the step resumed from, or 0).
            minutes_since: minutes since it was written, on a monotonic clock.
        """
        if step <= saved_step:
            return False
        on_time = self.every_minutes is not None and minutes_since >= self.every_minutes
        return on_time or step % self.every_steps == 0


class Checkpoints(Callback):
    """Saves by a rule. It must come last, so that a step's metrics are on disk before its checkpoint."""

    name = "checkpoint"

    def __init__(self, folder: Path, ledger: Path, rule: SaveRule, keep: KeepRule | None, log: TrainLog) -> None:
        """Save into `folder` by `rule`, and remove what `keep` does not keep; None keeps all."""
        self._folder, self._ledger, self._rule, self._keep, self._log = folder, ledger, rule, keep, log
        self._saved = 0
        self._when = time.monotonic()

    def on_start(self, trainer: Trainer) -> None:
        """Count the first step as saved."""
        self._saved, self._when = trainer.step, time.monotonic()

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Save if a checkpoint is due."""
        if self._rule.due(trainer.step, self._saved, (time.monotonic() - self._when) / 60):
            self._save(trainer)

    def on_end(self, trainer: Trainer) -> None:
        """Save the last step if it is not saved yet."""
        if trainer.step > self._saved:
            self._save(trainer)

    def _save(self, trainer: Trainer) -> None:
        began = time.monotonic()
        path = save_checkpoint(trainer.snapshot(), self._folder, self._ledger)
        before, self._saved, self._when = self._when, trainer.step, time.monotonic()
        stalled = self._when - began
        share = stalled / max(self._when - before, stalled)
        self._log.line(f"checkpoint {path.name}: {stalled:.3f} s, {share:.2%} of the time since the last")
        if self._keep is not None and (gone := prune(self._folder, self._ledger, self._keep)):
            self._log.line(f"removed {', '.join(one.name for one in gone)}: {self._ledger.name} has their fingerprints")
