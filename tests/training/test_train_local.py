"""The small local configuration trains, saves and resumes in its workspace."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from rc1_lib.config.step_metrics import READ, measured
from rc1_lib.environment.turn import Limits
from rc1_lib.errors import ConfigError
from rc1_lib.run import open_run, recorded_config
from rc1_lib.training.another_run import AnotherRunError
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.manifest import fingerprint, resolve, steps
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode, Start
from rc1_lib.training.row_episodes import _OneAnswer, as_prompts, reward
from rc1_lib.training.train_local import SmallResult, train_small
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace
from tests.training.rollout.standin import StandInChat
from tests.training.tiny import write_base

SHIPPED = PROJECT_ROOT / "configs/train_local.yaml"
SHORT = (
    "run.device_pref=[cpu]", "run.mixed_precision=fp32", "run.max_steps=6", "run.save_steps=2", "run.eval_steps=3",
    "data.max_length=96", "engine.lr=0.01", "engine.name=pure_pt_sft", "strategy.name=sft",
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


@pytest.mark.parametrize("folder", ["checkpoints/./rc1/best", "checkpoints/link", "checkpoints/sft.unfinished"])
def test_checkpoint_folders_of_the_main_training_are_rejected(base: Path, tmp_path: Path, folder: str) -> None:
    (tmp_path / "checkpoints/rc1").mkdir(parents=True)
    (tmp_path / "checkpoints/link").symlink_to("rc1")
    with pytest.raises(ConfigError, match=rf"run\.output_dir: '{re.escape(folder)}' .*checkpoints/local$"):
        train(tmp_path, base, f"run.output_dir={folder}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints"]
    assert not list((tmp_path / "checkpoints/rc1").iterdir())


def test_training_resumed_from_a_checkpoint_ends_with_the_same_bytes(
    undisturbed: Path, base: Path, copied: Path
) -> None:
    torch.manual_seed(999)  # global random states must not matter
    train(copied, base, resume="2")
    assert fingerprint(resolve(6, copied / "checkpoints/local")) == fingerprint(
        resolve(6, undisturbed / "checkpoints/local")
    )
    before, after = (MetricsLog(folder / "reports/metrics.jsonl").read() for folder in (undisturbed, copied))
    assert [(line["step"], line["loss"]) for line in after] == [(line["step"], line["loss"]) for line in before]


CALLBACKS = (
    "callbacks=[logging, checkpoint, eval_shadow, grad_clip, "
    "{lr_schedule: {kind: linear, warmup_steps: 0}}, "
    "{early_stop: {metric: eval/loss, patience: 1, higher_is_better: true}}]"
)


def test_every_callback_works(base: Path, tmp_path: Path) -> None:
    settings = (CALLBACKS, "engine.max_grad_norm=0.0001", "run.eval_steps=2")
    done = train(tmp_path, base, *settings)
    assert done.step == 4 and "eval/loss" in str(done.stop_reason), "the loss falls"
    lines = MetricsLog(tmp_path / "reports/metrics.jsonl").read()
    assert [line["lr"] / 0.01 for line in lines] == pytest.approx([1, 5 / 6, 4 / 6, 3 / 6])
    assert ["eval/loss" in line for line in lines] == [False, True, False, True]
    assert all(line["grad_norm"] > 0.0001 for line in lines)
    of_steps, of_evaluations = measured("pure_pt_sft", "sft", looked=READ) or ((), ())
    of_trainer = {"step", "mem_used_mb", "sec_per_step"}
    found = [{key for key, value in line.items() if value is not None} - of_trainer for line in lines]
    assert found == [of_steps, of_steps | of_evaluations] * 2, "early stop accepts the metrics of these lists"
    assert list(steps(tmp_path / "checkpoints/local")) == [2, 4]


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


def test_settings_that_a_preflight_recorded_stay(base: Path, tmp_path: Path) -> None:
    recorded = open_run(profile="local", workspace=tmp_path).write_effective_config()
    before = recorded.read_bytes()
    train(tmp_path, base, "run.max_steps=2")
    assert recorded.read_bytes() == before and recorded_config(tmp_path) == str(recorded)
    assert "pure_pt_sft" in (tmp_path / "reports/config_effective-local.yaml").read_text()


PLAYED = ("engine.name=trl_ppo", "strategy.name=ppo", "data.max_length=12", "run.max_steps=4", "run.eval_steps=4")


def test_shipped_ppo_answers_rows_resumes_and_says_what_has_no_effect(base: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    assert train(tmp_path, base, *PLAYED, messages=messages).step == 4
    lines = MetricsLog(tmp_path / "reports/metrics.jsonl").read()
    assert all({"loss", "kl", "ratio", "objective/scores"} <= line.keys() for line in lines) and len(lines) == 4
    assert lines[-1]["ratio"] != 1.0, "the second minibatch sees what the first one taught"
    assert lines[-1]["eval/objective/scores"] >= 0
    shown = " ".join(messages)
    assert "trust_remote_code: true has no effect" in shown and "dropout: 0.05 has no effect" in shown
    again = shutil.copytree(tmp_path, tmp_path.with_name("again"), symlinks=True)
    train(again, base, *PLAYED, resume="2")
    whole, resumed = (resolve(4, place / "checkpoints/local") for place in (tmp_path, again))
    assert fingerprint(whole) == fingerprint(resumed)


def test_answer_earns_by_its_tasks_rule_or_by_its_likeness() -> None:
    (ruled, free) = as_prompts(
        [
            {"input": "2 + 3?", "output": "It is 5.", "meta": {"task": "gsm8k"}},
            {"input": "Where?", "output": "in the old attic", "meta": {}},
        ]
    )
    assert [reward(ruled, answer) for answer in ("5", "The answer is 5.", "6")] == [1, 1, 0]
    assert [reward(free, answer) for answer in ("in the old attic", "no idea")] == [1, 0]
    assert 0 < reward(free, "in the attic") < 1


def answered(text: str, *, cut: bool = False, opens: bool = False) -> str:
    """The answer in a turn, sampled by a policy whose chat format may open its thoughts."""
    (row,) = as_prompts([{"input": "Where?", "output": "Paris", "meta": {}}])
    one, chat = _OneAnswer(row, Limits(turns=1, tokens=64, turn_chars=1000, argument_chars=1000)), StandInChat()
    chat.opens_thoughts = opens
    tokens = chat.encode(text if cut else f"{text}<|im_end|>")
    episode = RunningEpisode(Start("1", "1", one), chat, RolloutSampling(0.0, len(tokens), 1, 0), 200)
    for token in tokens:
        episode.take(token, 0.0)
    return episode.trajectory().outcome.answer


@pytest.mark.parametrize(
    ("text", "cut", "answer"),
    [
        ("<think>It must be</think> Paris", False, "Paris"),
        ("<think>It must be Paris, or", True, ""),
        ("Paris, or", True, ""),
        ("<think>It must be Paris", False, ""),
    ],
)
def test_what_a_limit_cut_or_only_thought_is_no_answer(text: str, cut: bool, answer: str) -> None:
    assert answered(text, cut=cut) == answer


def test_thoughts_that_the_prompt_opens_are_no_answer_until_they_close() -> None:
    assert answered("It must be</think> Paris", opens=True) == "Paris"
    assert answered("It must be Paris", opens=True) == ""
    assert answered("It must be Paris") == "It must be Paris"
