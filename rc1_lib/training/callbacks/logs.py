"""Metrics of every step: as JSON lines, for TensorBoard and other trackers, in the log, and to whoever watches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.callbacks.base_callback import BaseCallback
from rc1_lib.training.callbacks.trackers import Open, Tracker
from rc1_lib.training.metrics_log import MetricsLog
from rc1_lib.training.train_log import TrainLog

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from rc1_lib.training.trainer import Trainer

STAGE = "train"


class Logging(BaseCallback):
    """Writes what every step measured. A resumed run neither repeats nor leaves out a step."""

    name = "logging"

    def __init__(self, metrics: Path, tensorboard: Path, log: TrainLog, trackers: Sequence[Open] = ()) -> None:
        """Write to these places, and to what `trackers` open."""
        self._metrics, self._folder, self._log = MetricsLog(metrics), tensorboard, log
        self._board: SummaryWriter | None = None
        self._open, self._trackers = trackers, list[Tracker]()

    def on_start(self, trainer: Trainer) -> None:
        """Drop what a killed run wrote after the checkpoint that this one goes on from."""
        from torch.utils.tensorboard import SummaryWriter  # it takes a second to import

        last = self._metrics.truncate(trainer.step)
        if last < trainer.step:
            self._log.line(f"{self._metrics.path.name} ends at step {last}, the checkpoint is of step {trainer.step}")
        # Of the steps that are trained again TensorBoard shows only the new run's points.
        self._board = SummaryWriter(str(self._folder), purge_step=trainer.step + 1)
        self._trackers = [opens(trainer.facts) for opens in self._open]

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Write this step."""
        self._metrics.append(trainer.step, metrics)
        numbers = {name: value for name, value in metrics.items() if value is not None}
        assert self._board is not None, "on_start comes first"
        for name, value in numbers.items():
            self._board.add_scalar(name, value, trainer.step)
        for tracker in self._trackers:
            tracker.log(trainer.step, numbers)
        note = " ".join(f"{name} {value:.4g}" for name, value in numbers.items() if name in {"loss", "kl", "lr"})
        self._log.line(f"step {trainer.step}/{trainer.max_steps} {note} {numbers['sec_per_step']:.2f} s")
        report_progress(STAGE, trainer.step, trainer.max_steps, note)

    def on_end(self, trainer: Trainer) -> None:
        """Close TensorBoard's file, and the trackers."""
        assert self._board is not None, "on_start comes first"
        self._board.close()
        for tracker in self._trackers:
            tracker.close()
        self._log.line(f"ended at step {trainer.step}: {trainer.stop_reason or 'all steps done'}")
