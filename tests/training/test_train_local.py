"""The small local configuration trains, saves and resumes in its workspace."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
import torch
import yaml

from rc1_lib.config.step_metrics import READ, measured
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.training.another_run import AnotherRunError
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import read_ledger
from rc1_lib.training.checkpoint.manifest import NoCheckpointError, fingerprint, resolve, steps
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.checkpoint.state import diff_checkpoints
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.training.train_local import SmallResult, train_small
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace
from rc1_lib.workspace.folder import holding
from tests.forks import Forks
from tests.shares import share
from tests.training.tiny import write_base

SHIPPED = PROJECT_ROOT / "configs/train_local.yaml"
SHORT = (
    "run.device_pref=[cpu]", "run.mixed_precision=fp32", "run.max_steps=6", "run.save_steps=2", "run.eval_steps=3",
    "data.max_length=96", "engine.lr=0.01",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"), pad_token=None)


@pytest.fixture(scope="module")
def undisturbed(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which six steps were trained without interruption. Never write into it: use `copied`."""
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("whole")
    train(place, base)
    return place


@pytest.fixture
def copied(undisturbed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(undisturbed, tmp_path / "copy", symlinks=True)


def train(
    place: Path, base: Path, *overrides: str, resume: str | None = None, messages: list[str] | None = None
) -> SmallResult:
    notice = (messages if messages is not None else []).append
    return train_small(SHIPPED, Workspace(place), resume, [f"model.base={base}", *SHORT, *overrides], notice)


def test_twenty_steps_on_ten_rows_write_metrics_and_checkpoints(base: Path, tmp_path: Path) -> None:
    rows = "".join(f'{{"input": "{n} plus 1?", "output": "{n + 1}.", "meta": {{}}}}\n' for n in range(10))
    for name in ("train", "eval"):
        (tmp_path / f"{name}.jsonl").write_text(rows)
    data = ("data.train_path=train.jsonl", "data.eval_path=eval.jsonl", "run.max_steps=20", "run.save_steps=6")
    assert train(tmp_path, base, *data) == SmallResult(20, resolve("latest", tmp_path / "checkpoints/local"), None)
    lines = MetricsLog(tmp_path / "reports/metrics.jsonl").read()
    assert [line["step"] for line in lines] == list(range(1, 21))
    assert all(line["loss"] > 0 and line["sec_per_step"] > 0 and line["mem_used_mb"] > 0 for line in lines)
    assert lines[-1]["eval/loss"] < lines[2]["eval/loss"]
    assert list(steps(tmp_path / "checkpoints/local")) == [6, 12, 18, 20]


def test_metrics_of_the_main_training_are_kept(base: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints/rc1").mkdir(parents=True)
    (tmp_path / "reports").mkdir()
    own = tmp_path / "reports/metrics.jsonl"
    own.write_text('{"step": 1, "objective/scores": 0.5}\n')
    messages: list[str] = []
    train(tmp_path, base, "run.max_steps=1", messages=messages)
    assert own.read_text() == '{"step": 1, "objective/scores": 0.5}\n'
    assert [line["step"] for line in MetricsLog(tmp_path / "reports/metrics-local.jsonl").read()] == [1]
    assert any("this training writes to reports/metrics-local.jsonl" in line for line in messages)


@pytest.mark.parametrize("folder", ["checkpoints/rc1", "checkpoints/./rc1/best", "checkpoints/sft", "checkpoints/link"])
def test_checkpoint_folders_of_the_main_training_are_rejected(base: Path, tmp_path: Path, folder: str) -> None:
    (tmp_path / "checkpoints/rc1").mkdir(parents=True)
    (tmp_path / "checkpoints/link").symlink_to("rc1")
    with pytest.raises(ConfigError, match=rf"run\.output_dir: '{re.escape(folder)}' .*checkpoints/local$"):
        train(tmp_path, base, f"run.output_dir={folder}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints"]
    assert not list((tmp_path / "checkpoints/rc1").iterdir())


def test_second_training_in_a_workspace_is_rejected_with_the_process_at_work(base: Path, tmp_path: Path) -> None:
    with (
        holding(Workspace(tmp_path), "a training by train_local.yaml"),
        pytest.raises(RC1Error, match=rf"train_local\.yaml \(process {os.getpid()}, "),
    ):
        train(tmp_path, base)
    assert not (tmp_path / "checkpoints").exists()


def test_all_documented_files_are_written(undisturbed: Path) -> None:
    assert len(steps(undisturbed / "checkpoints/local")) >= 3
    assert [line["step"] for line in read_ledger(undisturbed / "reports/ckpt_manifest.jsonl")] == [2, 4, 6]
    effective = yaml.safe_load((undisturbed / "reports/config_effective.yaml").read_text())
    assert effective["run"]["max_steps"] == 6
    log = (undisturbed / "logs/train.log").read_text()
    assert "train_min.jsonl: not found; RC1 wrote a few synthetic rows" in log
    assert "ended at step 6: all steps done" in log
    assert list((undisturbed / "logs/tensorboard").iterdir())
    written = {path.name for path in resolve("latest", undisturbed / "checkpoints/local").iterdir()}
    assert written == {"adapter.safetensors", "nested.pt", "state.json", "manifest.json"}


@pytest.mark.parametrize("step", share([2, 4], 2))
def test_training_resumed_from_any_checkpoint_ends_with_the_same_bytes(
    undisturbed: Path, base: Path, copied: Path, step: int
) -> None:
    torch.manual_seed(999)  # global random states must not matter
    train(copied, base, resume=str(step))
    assert fingerprint(resolve(6, copied / "checkpoints/local")) == fingerprint(
        resolve(6, undisturbed / "checkpoints/local")
    )
    before, after = (MetricsLog(folder / "reports/metrics.jsonl").read() for folder in (undisturbed, copied))
    assert [(line["step"], line["loss"]) for line in after] == [(line["step"], line["loss"]) for line in before]


CALLBACKS = (
    "callbacks=[logging, checkpoint, eval_shadow, {grad_clip: {max_norm: 0.0001}}, "
    "{lr_schedule: {kind: linear, warmup_steps: 0}}, "
    "{early_stop: {metric: eval/loss, patience: 1, min_delta: 1.0, higher_is_better: false}}]"
)


def test_every_callback_works(base: Path, tmp_path: Path) -> None:
    settings = (CALLBACKS, "engine.max_grad_norm=null", "run.eval_steps=2")
    done = train(tmp_path, base, *settings)
    assert done.step == 4 and "eval/loss" in str(done.stop_reason), "the second evaluation is not better by 1"
    lines = MetricsLog(tmp_path / "reports/metrics.jsonl").read()
    assert [line["lr"] / 0.01 for line in lines] == pytest.approx([1, 5 / 6, 4 / 6, 3 / 6])
    assert ["eval/loss" in line for line in lines] == [False, True, False, True]
    assert all(line["grad_norm"] > 0.0001 for line in lines)
    of_steps, of_evaluations = measured("pure_pt_sft", "sft", looked=READ) or ((), ())
    of_trainer = {"step", "mem_used_mb", "sec_per_step"}
    found = [{key for key, value in line.items() if value is not None} - of_trainer for line in lines]
    assert found == [of_steps, of_steps | of_evaluations] * 2, "early stop accepts the metrics of these lists"
    assert list(steps(tmp_path / "checkpoints/local")) == [2, 4]


def killed_in_a_checkpoint(workspace: str, base: str) -> None:
    """Train in a separate process, and die at the rename that would finish the checkpoint of step 4."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[1]).endswith("step_00004"):
            os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(1)
    sys.addaudithook(hook)
    train_small(SHIPPED, Workspace(Path(workspace)), None, [f"model.base={base}", *SHORT])


def test_training_killed_during_a_save_and_resumed_ends_with_the_same_bytes(
    undisturbed: Path, base: Path, tmp_path: Path, forks: Forks
) -> None:
    done = forks.start(f"{__name__}.killed_in_a_checkpoint", tmp_path, base)
    assert done.wait() == -signal.SIGKILL, done.read_output()[-2000:]
    assert [line["step"] for line in MetricsLog(tmp_path / "reports/metrics.jsonl").read()] == [1, 2, 3, 4]
    train(tmp_path, base, resume="latest")
    ours, theirs = (resolve(6, folder / "checkpoints/local") for folder in (tmp_path, undisturbed))
    assert diff_checkpoints(load_checkpoint(ours), load_checkpoint(theirs), exact=True) == []
    assert fingerprint(ours) == fingerprint(theirs)
    assert [line["step"] for line in MetricsLog(tmp_path / "reports/metrics.jsonl").read()] == [1, 2, 3, 4, 5, 6]


def test_resumed_training_may_add_steps_but_not_change_settings_data_or_base(
    base: Path, copied: Path, tmp_path: Path
) -> None:
    assert train(copied, base, "run.max_steps=7", resume="latest").step == 7
    with pytest.raises(AnotherRunError, match=r": engine\.lr \(0\.01 .*0\.02 "):
        train(copied, base, "engine.lr=0.02", resume="latest")
    (copied / "data/train_min.jsonl").write_text('{"input": "a", "output": "b", "meta": {}}\n')
    with pytest.raises(AnotherRunError, match=r"[:,] data\b"):
        train(copied, base, resume="latest")
    other = write_base(tmp_path / "other", hidden=64)
    with pytest.raises(AnotherRunError, match=r": model\.base \(.*, base, data"):
        train(copied, other, resume="latest")


@pytest.mark.parametrize("name", ["2", "checkpoints/local/step_00002"])
def test_resuming_from_a_removed_checkpoint_names_keep_last(base: Path, copied: Path, name: str) -> None:
    prune(copied / "checkpoints/local", copied / LEDGER, KeepRule(2))
    with pytest.raises(CheckpointError, match=r"step_00002: .*run\.keep_last \(2\).*: 4, 6; "):
        train(copied, base, "run.keep_last=2", resume=name)
    with pytest.raises(NoCheckpointError, match=r"step_00003: .*: 4, 6; "):
        train(copied, base, "run.keep_last=2", resume="3")


def test_resumed_training_uses_and_reports_the_checkpoints_threads(undisturbed: Path, base: Path, copied: Path) -> None:
    messages: list[str] = []
    torch.set_num_threads(2)
    train(copied, base, resume="4", messages=messages)
    assert torch.get_num_threads() == 1
    assert messages[0] == "threads: set from 2 to the checkpoint's 1"
    assert fingerprint(resolve(6, copied / "checkpoints/local")) == fingerprint(
        resolve(6, undisturbed / "checkpoints/local")
    )


def test_checkpoint_of_an_earlier_run_is_not_reported_as_a_result(base: Path, copied: Path) -> None:
    assert train(copied, base, "run.max_steps=1", "callbacks=[logging]") == SmallResult(1, None, None)


def test_unused_and_ineffective_keys_are_reported(base: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    train(tmp_path, base, "run.max_steps=1", "engine.clip_coef=0.2", "data.padding_side=left", messages=messages)
    assert "engine.clip_coef: not used by pure_pt_sft" in messages
    assert "data.padding_side: left has no effect; rows are padded on the right, which learns the same" in messages
