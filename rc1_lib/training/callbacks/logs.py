"""Outputs of a training: metrics of every step as JSON lines, for TensorBoard and other trackers, and a log.

`reports/metrics.jsonl` has exactly one line per step, even if the run was killed and resumed. `logs/train.log` says
what happened when, for people.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from rc1_lib.errors import RowError
from rc1_lib.masking import conceal, secrets
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.api import Callback
from rc1_lib.training.callbacks.trackers import Open, Tracker
from rc1_lib.workspace.artifacts import atomic_write, now

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from rc1_lib.training.trainer import Trainer


SECONDS = "sec_per_step"
NAMED = ("step", "loss", "kl", "ratio", "lr", "mem_used_mb", SECONDS)
"""Fields of every line. One that an engine does not have (such as kl in supervised training) is null."""


class MetricsLog:
    """Appends lines, and drops those that a resumed run will write again."""

    def __init__(self, path: Path) -> None:
        """Write to `path`. Its folder is created with the first line."""
        self.path = path

    def append(self, step: int, metrics: Mapping[str, float | None]) -> None:
        """Add the line of a step, and wait until it is on disk, so that no later checkpoint can exist without it."""
        line = {**dict.fromkeys(NAMED), "step": step, **metrics}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            stream.write(orjson.dumps(line) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def truncate(self, step: int) -> int:
        """Drop all lines of later steps, and a line that a kill cut off, in one rename.

        Returns:
            The step of the last remaining line; 0 if there is none.

        Raises:
            RowError: if a complete line is not a JSON object with a step.
        """
        if not self.path.exists():
            return 0
        content = self.path.read_bytes()
        kept = [line for line in self._whole(content) if self._step(line) <= step]
        if b"".join(kept) != content:
            with atomic_write(self.path) as stream:
                stream.writelines(kept)
        return self._step(kept[-1]) if kept else 0

    def read(self) -> list[dict[str, Any]]:
        """Return all complete lines, oldest first.

        Raises:
            RowError: as `truncate`.
        """
        return [self._parsed(line) for line in self._whole(self.path.read_bytes())] if self.path.exists() else []

    @staticmethod
    def _whole(content: bytes) -> list[bytes]:
        return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)

    def _step(self, line: bytes) -> int:
        return int(self._parsed(line)["step"])

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            found: dict[str, Any] = orjson.loads(line)
            int(found["step"])
            return found
        except (ValueError, KeyError, TypeError):
            raise RowError(
                f"{self.path}: the line {line[:60]!r} is not a JSON object with a step; move the file away to begin a "
                "new one"
            ) from None


class TrainLog:
    """Appends lines with UTC time, with secrets masked."""

    def __init__(self, path: Path) -> None:
        """Write to `path`, and create its folder if necessary."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._hidden = path, secrets()

    def line(self, text: str) -> None:
        """Add a line."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"{now()} {conceal(text, self._hidden)}\n")


STAGE = "train"
_NOTED = {"env/success": "success", "env/right": "right", "objective/scores": "reward", "loss": "loss", "kl": "kl"}
"""Metric -> its word in the line of a step, if the step has it; a line of the console has 100 columns."""


class Logging(Callback):
    """Writes the metrics of every step. A resumed run neither repeats nor skips a step."""

    name = "logging"

    def __init__(self, metrics: Path, tensorboard: Path, log: TrainLog, trackers: Sequence[Open] = ()) -> None:
        """Keep the files to write, and functions that open trackers."""
        self._metrics, self._folder, self._log = MetricsLog(metrics), tensorboard, log
        self._board: SummaryWriter | None = None
        self._open, self._trackers = trackers, list[Tracker]()

    def on_start(self, trainer: Trainer) -> None:
        """Drop what a killed run wrote after the checkpoint from which this one resumes."""
        from torch.utils.tensorboard import SummaryWriter  # it takes a second to import

        last = self._metrics.truncate(trainer.step)
        if last < trainer.step:
            self._log.line(f"{self._metrics.path.name} ends at step {last}, the checkpoint is of step {trainer.step}")
        # For steps that are trained again, TensorBoard shows only the new points.
        self._board = SummaryWriter(str(self._folder), purge_step=trainer.step + 1)
        self._trackers = [opens(trainer.facts) for opens in self._open]

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Write the metrics of this step."""
        self._metrics.append(trainer.step, metrics)
        numbers = {name: value for name, value in metrics.items() if value is not None}
        assert self._board is not None, "call on_start first"
        for name, value in numbers.items():
            self._board.add_scalar(name, value, trainer.step)
        for tracker in self._trackers:
            with self._reported(f"step {trainer.step} was not logged by", tracker):
                tracker.log(trainer.step, numbers)
        note = " ".join(f"{words} {numbers[name]:.4g}" for name, words in _NOTED.items() if name in numbers)
        self._log.line(f"step {trainer.step}/{trainer.max_steps} {note} {numbers['sec_per_step']:.2f} s")
        report_progress(STAGE, trainer.step, trainer.max_steps, note)

    def on_end(self, trainer: Trainer) -> None:
        """Close TensorBoard and the trackers."""
        assert self._board is not None, "call on_start first"
        self._board.close()
        for tracker in self._trackers:
            with self._reported("there was no end for", tracker):
                tracker.close()
        self._log.line(f"ended at step {trainer.step}: {trainer.stop_reason or 'all steps done'}")

    @contextmanager
    def _reported(self, what: str, tracker: Tracker) -> Iterator[None]:
        """Log what a tracker could not do: it only observes, and the step's checkpoint comes after it."""
        try:
            yield
        except Exception as error:
            self._log.line(f"{what} {type(tracker).__name__}: {error}")
