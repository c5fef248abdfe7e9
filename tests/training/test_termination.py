"""A real training that gets SIGTERM saves its step within the grace period, and ends by the signal."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.cli.command import run_command
from rc1_lib.cli.options import Options
from rc1_lib.training.callbacks.checkpoints import Checkpoints, SaveRule
from rc1_lib.training.callbacks.logs import TrainLog
from rc1_lib.training.checkpoint.manifest import steps
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.trainer import Trainer
from tests.forks import Fork, this_interpreter
from tests.training.toys import Counting, Doubling, Scale, ScaleSetup

_IN_STEP_2 = "within step 2"


class Slow(Scale):
    """Its second step waits for a file."""

    goes_on: Path

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        if batch["n"][0] == 2:
            print(_IN_STEP_2, flush=True)
            while not self.goes_on.exists():
                time.sleep(0.01)
        return super().train_step(batch)


def train(root: str, grace_s: str) -> None:
    """Train six steps as a command does, with a checkpoint of the last one only."""
    folder, engine = Path(root), Slow()
    engine.goes_on = folder / "goes_on"
    saving = Checkpoints(folder / "ckpt", folder / "ledger", SaveRule(99, None), None, TrainLog(folder / "log"))
    trainer = Trainer(engine, ScaleSetup(0.1), Doubling(), Counting(), [saving], 6, 0, {}, float(grace_s))
    sys.exit(run_command(lambda _: trainer.fit(None), Options(folder), {}))


def in_step_2(root: Path, grace_s: float) -> Fork:
    process = this_interpreter(root / "forks").start("tests.training.test_termination.train", root, grace_s)
    until = time.monotonic() + 300
    while _IN_STEP_2 not in process.read_output():
        assert process.poll() is None and time.monotonic() < until, process.read_output()
        time.sleep(0.01)
    return process


def test_terminated_training_ends_its_step_saves_it_and_ends_by_the_signal(tmp_path: Path) -> None:
    process = in_step_2(tmp_path, 300)
    process.terminate()
    time.sleep(0.2)
    assert process.poll() is None, "it did not finish its step"
    (tmp_path / "goes_on").touch()
    assert process.wait() == -signal.SIGTERM
    assert process.read_output().count("stopped (SIGTERM)") == 1
    assert list(steps(tmp_path / "ckpt")) == [2]
    assert load_checkpoint(tmp_path / "ckpt/step_00002").step == 2


@pytest.mark.parametrize(("grace_s", "signals"), [(300, 2), (0.2, 1), (0, 1)])
def test_second_signal_or_the_end_of_the_grace_period_ends_training_within_its_step(
    grace_s: float, signals: int, tmp_path: Path
) -> None:
    process = in_step_2(tmp_path, grace_s)
    process.terminate()
    while signals == 2 and process.poll() is None:  # signals that wait together are one
        time.sleep(0.1)
        with suppress(ProcessLookupError):
            process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    assert not (tmp_path / "ckpt").exists()
