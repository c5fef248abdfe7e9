"""Checkpoints on time, and of the last step."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.training.callbacks.quiet import Quiet
from rc1_lib.training.checkpoint.keep_rule import KeepRule
from rc1_lib.training.checkpoint.retention import prune
from rc1_lib.training.checkpoint.save import save_checkpoint
from rc1_lib.training.checkpoint.save_rule import SaveRule
from rc1_lib.training.train_log import TrainLog

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


class Checkpoints(Quiet):
    """Saves by a rule. It comes last, so that a step's metrics are on the disk before its checkpoint is."""

    name = "checkpoint"

    def __init__(self, folder: Path, ledger: Path, rule: SaveRule, keep: KeepRule | None, log: TrainLog) -> None:
        """Save into `folder` by `rule`, and remove what `keep` does not; None keeps all."""
        self._folder, self._ledger, self._rule, self._keep, self._log = folder, ledger, rule, keep, log
        self._saved = 0
        self._when = time.monotonic()

    def on_start(self, trainer: Trainer) -> None:
        """The step that the run begins with is saved already, or is nothing yet."""
        self._saved, self._when = trainer.step, time.monotonic()

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Save when it is due."""
        if self._rule.due(trainer.step, self._saved, (time.monotonic() - self._when) / 60):
            self._save(trainer)

    def on_end(self, trainer: Trainer) -> None:
        """Save the last step, if it was not due."""
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
