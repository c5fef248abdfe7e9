"""PPO on rows of input and output: the policy answers each input once, in one turn without tools, and is paid for it.

The answer rule of the task that `meta.task` names pays 1 or 0. Without one, the answer earns its likeness to `output`
in [0, 1]. `configs/train_local.yaml` learns so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, cast

import torch

from rc1_lib.answer_rules.names import name_f1
from rc1_lib.config.file import load_config
from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.markers import THINK, THINK_END, TURN_ENDS, defused
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.environment.turn import Limits
from rc1_lib.records import MeasuredRow, Message
from rc1_lib.run import PUBLISHED
from rc1_lib.task_specs import answer_in, is_right, task_names
from rc1_lib.training.api import Engine
from rc1_lib.training.callbacks.eval_shadow import EvalShadow, Evaluate
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import Start, Trajectory
from rc1_lib.training.train_config import TrainConfig
from rc1_lib.workspace.artifacts import PROJECT_ROOT

_MINIBATCHES = 4


def run_of(config: TrainConfig, rows: int) -> RunConfig:
    """Return what PPO needs of a run's configuration: the published one, with the values of the small file.

    Args:
        rows: answers in a step.
    """
    engine, model, longest = config.engine, config.model, config.data.max_length
    given = {
        "base_model": json.dumps(model.base, ensure_ascii=False),
        "lr": engine.lr,
        "target_kl": engine.target_kl,
        "clip": engine.clip_coef,
        "steps": config.run.max_steps,
        "batch_size": rows,
        "rollout_len": longest,
        "finetune.method": "lora" if model.quantization is None else "qlora",
        "training.threads": torch.get_num_threads(),
        "training.limits.tokens": longest,
        "training.max_tokens": longest,
        "training.describe_tools": "false",
        "training.adapter.targets": f"[{', '.join(model.lora.target_modules)}]",
        "training.gradient_checkpointing": str(model.gradient_checkpointing).lower(),
        "training.update.minibatches": min(rows, _MINIBATCHES),
        "training.update.micro_tokens": config.data.batch_size * longest,
        "training.update.max_grad_norm": engine.max_grad_norm,
        "training.ppo.value_warm_up": 0,  # a small run may be shorter
    }
    overrides = [f"{key}={value}" for key, value in given.items() if value is not None]
    return load_config(PROJECT_ROOT / PUBLISHED, overrides)


def as_prompts(rows: Sequence[dict[str, Any]]) -> list[MeasuredRow]:
    """Return rows of a file as what a `Playground` plays: the input is the user's message."""
    return [
        cast(MeasuredRow, {**row, "id": str(number), "messages": [{"role": "user", "content": defused(row["input"])}]})
        for number, row in enumerate(rows, start=1)
    ]


def reward(row: MeasuredRow, answer: str) -> float:
    """Return what an answer earns, in [0, 1]."""
    made = cast(dict[str, Any], row)
    task, wanted = made["meta"].get("task"), made["output"]
    if task in task_names():
        return float(is_right(task, answer_in(task, answer), answer_in(task, wanted)))
    return name_f1(answer, wanted)


class RowPPO:
    """Has the batch's `rows` answered once each, and adds `trajectories` and `scores`."""

    def __init__(self, run: RunConfig) -> None:
        """Keep the limits of an answer."""
        self._run = run

    def attach_engine(self, engine: Engine) -> None:
        """Keep the engine; from now on it plays rows of a file."""
        assert isinstance(engine, PolicyEngine), "the configuration was checked"
        self._engine = engine
        engine.playground = _Rows(self._run, engine.playground.form)

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Have the rows answered, and return metrics of the answers."""
        rows, step = batch["rows"], batch["step"]
        keys = [f"{row['id']}/{place}" for place, row in enumerate(rows)]
        played = self._engine.play(
            rows, keys, temperature=self._engine.temperature, seed=self._engine.seed, iteration=step, to_learn=True
        )
        batch["trajectories"], batch["scores"] = played, _scores(rows, played)
        return {"rows": float(len(rows)), "answered": _answered(played)}


def answers_on(rows: Sequence[MeasuredRow]) -> Evaluate:
    """Return a function that has these rows answered, each time with the same random numbers."""
    keys = [f"{EvalShadow.name}/{row['id']}" for row in rows]

    def look(engine: Engine) -> dict[str, float]:
        assert isinstance(engine, PolicyEngine), "only a PolicyEngine can play"
        played = engine.play(rows, keys, temperature=engine.temperature, seed=engine.seed, iteration=0)
        return {"objective/scores": fmean(_scores(rows, played)), "answered": _answered(played)}

    return look


def _scores(rows: Sequence[MeasuredRow], played: Sequence[Trajectory]) -> list[float]:
    return [reward(row, one.outcome.answer) for row, one in zip(rows, played, strict=True)]


def _answered(played: Sequence[Trajectory]) -> float:
    """Return the share of answers that ended by themselves."""
    return fmean(one.outcome.status is EpisodeStatus.ANSWERED for one in played)


class _Rows(Playground):
    """Plays rows of a file."""

    def start(self, row: MeasuredRow, key: str) -> Start:
        """Ask a row's input."""
        return Start(str(row["id"]), key, _OneAnswer(row, self._limits))


class _OneAnswer(Episode):
    """A question that the first turn answers."""

    def __init__(self, row: MeasuredRow, limits: Limits) -> None:
        self.limits, self.status = limits, EpisodeStatus.RUNNING
        self.messages = [*row["messages"]]
        self._outcome = EpisodeOutcome(
            self.status, "", right=False, needs=False, obtained=False, asked=0, off_target=0, turns=0, hops=0,
            tool_errors=0, malformed=0, tokens=0,
        )  # fmt: skip

    def say(self, text: str, *, tokens: int | None = None, cut: bool = False) -> list[Message]:
        """Take the answer, without its thoughts, and end. What a limit cut, or only thought, is no answer."""
        answer = text.removesuffix(TURN_ENDS[0]).rpartition(THINK_END)[2].strip()
        if cut or THINK in answer:
            answer = ""
        self.messages.append({"role": "assistant", "content": answer})
        self.status = EpisodeStatus.MAX_TOKENS if cut else EpisodeStatus.ANSWERED
        self._outcome = replace(self._outcome, status=self.status, answer=answer, turns=1, tokens=tokens or 0)
        return []

    def outcome(self) -> EpisodeOutcome:
        """Return how it ended."""
        return self._outcome
