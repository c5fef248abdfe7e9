"""The training loop calls its parts in the documented order and resumes from a snapshot bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rc1_lib.training.api import Callback
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.trainer import Trainer
from tests.training.checkpoint.states import equal
from tests.training.toys import Counting, Doubling, Scale, ScaleSetup


def trainer(max_steps: int, *callbacks: Any) -> Trainer:
    return Trainer(Scale(), ScaleSetup(0.1), Doubling(), Counting(), callbacks, max_steps, 0, {"base": "none"})


class Recorder(Callback):
    name = "recorder"

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, float | None]]] = []
        self.around: list[str] = []

    def on_start(self, trainer: Trainer) -> None:
        self.around.append("start")

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        self.lines.append((trainer.step, dict(metrics)))

    def on_end(self, trainer: Trainer) -> None:
        self.around.append("end")


def test_every_step_calls_source_strategy_and_engine_in_order() -> None:
    recorder = Recorder()
    run = trainer(2, recorder)
    assert run.fit(None) == 2
    assert run.engine.calls == ["setup", "attach_engine", *["on_batch", "train_step"] * 2]
    assert recorder.around == ["start", "end"]
    assert [step for step, _ in recorder.lines] == [1, 2]
    assert {"loss", "lr", "rows", "mem_used_mb", "sec_per_step"} == set(recorder.lines[0][1])


def test_resumed_run_ends_with_the_same_bits(tmp_path) -> None:
    whole = trainer(6)
    whole.fit(None)

    first = trainer(3)
    first.fit(None)
    saved = save_checkpoint(first.snapshot(), tmp_path / "ckpt", tmp_path / "ledger.jsonl")
    torch.manual_seed(99)
    second = trainer(6)
    assert second.fit(load_checkpoint(saved)) == 6
    assert equal(whole.snapshot(), second.snapshot())
    assert not torch.equal(second.engine.weight, first.engine.weight)


class Explodes(Callback):
    """Makes a finite gradient whose square is infinite. Only the optimizer's moment shows it."""

    name = "explodes"

    def on_start(self, trainer: Trainer) -> None:
        trainer.engine.weight.register_hook(lambda gradient: gradient.fill_(1e30))


def test_infinite_optimizer_moment_is_not_saved() -> None:
    run = trainer(1, Explodes())
    run.fit(None)
    assert torch.isfinite(run.engine.weight).all()
    with pytest.raises(DivergedError, match=r"^optimizer\.state\.0\.exp_avg_sq .*nested\.pt .*1 of 1 "):
        run.snapshot()


def test_state_of_another_engine_is_rejected() -> None:
    run = trainer(1)
    run.fit(None)
    state = run.snapshot()
    other = CheckpointState(state.tensors, {**state.values, "engine": ["adapter", "value_head"]}, state.nested)
    with pytest.raises(CheckpointError, match=r"adapter, value_head, .*adapter, optimizer"):
        trainer(2).fit(other)
