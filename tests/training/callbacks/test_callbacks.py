"""The effect of each callback on a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rc1_lib.errors import ConfigError, RowError
from rc1_lib.runtime.progress import listening
from rc1_lib.training.api import Callback
from rc1_lib.training.callbacks.checkpoints import Checkpoints, SaveRule
from rc1_lib.training.callbacks.early_stop import EarlyStop
from rc1_lib.training.callbacks.eval_shadow import EvalShadow, batch_metrics
from rc1_lib.training.callbacks.logs import NAMED, Logging, MetricsLog, TrainLog
from rc1_lib.training.callbacks.lr_schedule import LRSchedule
from rc1_lib.training.checkpoint.manifest import resolve, steps
from rc1_lib.training.checkpoint.retention import KeepRule
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.trainer import Trainer
from tests.training.toys import Counting, Doubling, Scale, ScaleSetup


def run(max_steps: int, *callbacks: Callback, resume: CheckpointState | None = None, lr: float = 0.1) -> Trainer:
    torch.manual_seed(0)
    trainer = Trainer(Scale(), ScaleSetup(lr), Doubling(), Counting(), callbacks, max_steps, 0, {})
    trainer.fit(resume)
    return trainer


def logging_to(folder: Path) -> Logging:
    return Logging(folder / "reports/metrics.jsonl", folder / "logs/tensorboard", TrainLog(folder / "logs/train.log"))


def saving_to(folder: Path, every: int, keep_last: int | None = None) -> Checkpoints:
    log, keep = TrainLog(folder / "logs/train.log"), None if keep_last is None else KeepRule(keep_last)
    return Checkpoints(folder / "ckpt", folder / "reports/ledger.jsonl", SaveRule(every, None), keep, log)


def test_logging_writes_every_step_with_all_named_fields(tmp_path: Path) -> None:
    progress = []
    with listening(lambda stage, done, total, note: progress.append((stage, done, total))):
        run(3, logging_to(tmp_path))
    lines = MetricsLog(tmp_path / "reports/metrics.jsonl").read()
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert all(set(NAMED) <= line.keys() for line in lines)
    assert lines[0]["kl"] is None
    assert lines[0]["rows"] == 2.0
    assert progress == [("train", 1, 3), ("train", 2, 3), ("train", 3, 3)]
    assert "step 3/3 loss" in (tmp_path / "logs/train.log").read_text()
    assert list((tmp_path / "logs/tensorboard").iterdir())


def test_resumed_run_logs_every_step_once(tmp_path: Path) -> None:
    run(5, logging_to(tmp_path), saving_to(tmp_path, every=2))
    path = tmp_path / "reports/metrics.jsonl"
    before = MetricsLog(path).read()
    with path.open("ab") as stream:
        stream.write(b'{"step":6,"lo')  # a kill within a line
    state = load_checkpoint(resolve(4, tmp_path / "ckpt"))
    run(7, logging_to(tmp_path), saving_to(tmp_path, every=2), resume=state)
    after = MetricsLog(path).read()
    assert [line["step"] for line in after] == [1, 2, 3, 4, 5, 6, 7]
    assert after[:4] == before[:4]
    assert after[4]["loss"] == before[4]["loss"]


def test_metrics_line_without_a_step_is_rejected(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "m.jsonl")
    assert log.truncate(3) == 0
    log.path.write_bytes(b'{"loss": 1}\n')
    with pytest.raises(RowError, match=r"m\.jsonl: .*\{\"loss\": 1\}"):
        log.truncate(3)
    with pytest.raises(RowError, match=r"m\.jsonl: .*\{\"loss\": 1\}"):
        log.read()


def test_checkpoints_are_saved_on_schedule_and_at_the_end(tmp_path: Path) -> None:
    run(7, saving_to(tmp_path, every=3))
    assert list(steps(tmp_path / "ckpt")) == [3, 6, 7]
    assert resolve("latest", tmp_path / "ckpt").name == "step_00007"


def test_held_out_batches_are_weighted_by_tokens() -> None:
    trainer = Trainer(Scale(), ScaleSetup(0.1), Doubling(), Counting(), [], 10, 0, {})
    trainer.engine.setup(ScaleSetup(0.1))
    losses = iter([1.0, 4.0])
    trainer.engine.eval_step = lambda batch: {"loss": next(losses), "tokens": float(len(batch["x"]))}
    metrics: dict[str, float | None] = {}
    shadow = EvalShadow(batch_metrics([{"x": torch.zeros(3)}, {"x": torch.zeros(1)}]), every=5)
    for trainer.step in (1, 4, 5):
        shadow.on_step(trainer, metrics)
    assert metrics.pop("sec_per_step", 0.0) > 0, "the evaluation's time must count in the step's"
    assert metrics == {"eval/loss": (1.0 * 3 + 4.0 * 1) / 4}


def test_early_stop_counts_failures_in_a_row_and_only_measured_steps() -> None:
    stop = EarlyStop("m", patience=2, higher_is_better=False)
    trainer = Trainer(Scale(), ScaleSetup(0.1), Doubling(), Counting(), [], 99, 0, {})
    for value in (1.0, 1.0, None, 0.8, 0.85, None):
        stop.on_step(trainer, {"m": value})
    assert trainer.stop_reason is None  # the second 1.0 failed, 0.8 was better, 0.85 failed
    stop.on_step(trainer, {"m": 0.81})
    assert trainer.stop_reason == "m did not improve on 0.8 in 2 measurements"
    higher = EarlyStop("m", patience=1, higher_is_better=True)
    trainer.stop_reason = None
    for value in (1.0, 2.0):
        higher.on_step(trainer, {"m": value})
    assert trainer.stop_reason is None


def test_unmeasured_metric_is_rejected_at_the_first_step_before_a_save(tmp_path: Path) -> None:
    stop = EarlyStop("los", patience=1, higher_is_better=False, key="training.early_stop.metric")
    with pytest.raises(ConfigError, match=r"^training\.early_stop\.metric: .*'los', .* 1 .* loss, "):
        run(3, stop, logging_to(tmp_path), saving_to(tmp_path, every=1))
    assert not (tmp_path / "ckpt").exists()


def test_resumed_schedule_continues_from_the_configured_rate(tmp_path: Path) -> None:
    def schedule() -> LRSchedule:
        return LRSchedule("linear", warmup_steps=0)

    run(4, schedule(), logging_to(tmp_path / "whole"))
    run(4, schedule(), saving_to(tmp_path, every=2))
    run(4, schedule(), logging_to(tmp_path), resume=load_checkpoint(resolve(2, tmp_path / "ckpt")))
    whole = [line["lr"] for line in MetricsLog(tmp_path / "whole/reports/metrics.jsonl").read()]
    assert whole == pytest.approx([0.1, 0.075, 0.05, 0.025])
    assert [line["lr"] for line in MetricsLog(tmp_path / "reports/metrics.jsonl").read()] == whole[2:]
