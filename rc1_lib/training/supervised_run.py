"""Training by the small local configuration, from its file to the last checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from transformers import PreTrainedTokenizerBase

from rc1_lib.training.base_model import base_fingerprint, load_tokenizer
from rc1_lib.training.breakdown import FROM_ROWS, naming_breakdowns
from rc1_lib.training.callbacks.build import build_callbacks
from rc1_lib.training.callbacks.trackers import check_trackers
from rc1_lib.training.checkpoint.names import LATEST
from rc1_lib.training.device import Precision
from rc1_lib.training.models import resolved_base
from rc1_lib.training.process import process_values
from rc1_lib.training.readers.collate import Collator
from rc1_lib.training.readers.encode import EncodedRow, encode_rows
from rc1_lib.training.readers.jsonl import JSONLReader
from rc1_lib.training.readers.minimal import ensure_rows
from rc1_lib.training.readers.shuffled import ShuffledRows
from rc1_lib.training.registry import check_of_rows, make_engine, make_strategy
from rc1_lib.training.run_paths import METRICS, check_small_output, small_metrics
from rc1_lib.training.same_run import differences, resumed_state
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.train_config import ModelSection, TrainConfig
from rc1_lib.training.train_config_file import load_train_config
from rc1_lib.training.train_log import TrainLog
from rc1_lib.training.trainer import Trainer
from rc1_lib.workspace.artifacts import Workspace, write_text
from rc1_lib.workspace.file_hashes import sha256_file
from rc1_lib.workspace.lock import holding

EFFECTIVE = "reports/config_effective.yaml"
_NOTHING_LEFT = "No checkpoint was written: the list of callbacks has none that does"


@dataclass(frozen=True, slots=True)
class SmallResult:
    """How training ended: finished steps, the last checkpoint (None without the callback), why it stopped early."""

    step: int
    checkpoint: Path | None
    stop_reason: str | None


def train_small(
    config_path: Path,
    workspace: Workspace,
    resume: str | None,
    overrides: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> SmallResult:
    """Train by a small local configuration.

    Args:
        config_path: the YAML file.
        workspace: where everything is read and written.
        resume: `latest`, a step or a path: the checkpoint to go on from; None begins anew.
        overrides: `a.b=c`, over the file.
        say: told of notices; they go into the log too.

    Raises:
        RC1Error: for a configuration, data, base or checkpoint that cannot be used, or while another run is at work.
        DivergedError: when training leaves the finite numbers.
        BreakdownError: when the disk or memory is full.
    """
    config = load_train_config(config_path, overrides)
    check_of_rows(config.engine.name, config.strategy.name)
    check_small_output(workspace, config.run.output_dir)
    with holding(workspace, f"a training by {config_path.name}"):
        return _train(config, workspace, resume, say)


def _train(config: TrainConfig, workspace: Workspace, resume: str | None, say: Callable[[str], None]) -> SmallResult:
    check_trackers(config.tracking)
    log = TrainLog(workspace.path(config.run.log_file))
    model = config.model.model_copy(update={"base": resolved_base(config.model.base, workspace, "model.base")})

    def notice(text: str) -> None:
        say(text)
        log.line(text)

    write_text(workspace.path(EFFECTIVE), yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    if (metrics := small_metrics(workspace)) != METRICS:
        notice(f"RC1 itself has trained in this workspace: its metrics stay, this run's go to {metrics}")
    with naming_breakdowns("Nothing was trained yet", FROM_ROWS):
        facts, trainer = _assembled(config, model, workspace, log, notice)
    saves = any(callback.name == "checkpoint" for callback in config.callbacks)
    left = workspace.path(config.run.output_dir) if saves else _NOTHING_LEFT
    with naming_breakdowns(left, FROM_ROWS, partial(differences, facts=facts)):
        state = None if resume is None else resumed_state(resume, config, workspace, facts, notice)
        trainer.facts["process"] = process_values()  # the threads may be the checkpoint's now
        step = trainer.fit(state)
    return SmallResult(step, _saved(config, workspace), trainer.stop_reason)


def _saved(config: TrainConfig, workspace: Workspace) -> Path | None:
    # Without the callback, what `latest` leads to is an earlier run's.
    if all(callback.name != "checkpoint" for callback in config.callbacks):
        return None
    latest = workspace.path(config.run.output_dir) / LATEST
    return latest.resolve() if latest.exists() else None


def _assembled(
    config: TrainConfig, model: ModelSection, workspace: Workspace, log: TrainLog, notice: Callable[[str], None]
) -> tuple[dict[str, Any], Trainer]:
    """The facts that every checkpoint carries, and a trainer with everything in its place."""
    data = config.data
    tokenizer = load_tokenizer(model)
    train_rows, held_out = (
        _rows(name, evaluation, config, workspace, tokenizer, notice)
        for name, evaluation in ((data.train_path, False), (data.eval_path, True))
    )
    collate = Collator(int(tokenizer.pad_token_id), data.padding_side)
    shadow = [collate(held_out[at : at + data.batch_size]) for at in range(0, len(held_out), data.batch_size)]
    engine = make_engine(config.engine.name, SupervisedSetup, notice)
    for key in getattr(engine, "ignores", ()):
        if getattr(config.engine, key) is not None:
            notice(f"engine.{key}: means nothing to {config.engine.name}, it is not used")
    facts = {
        "config": config.model_dump(mode="json"),
        "base": base_fingerprint(model),
        "data": {name: sha256_file(workspace.path(name)) for name in (data.train_path, data.eval_path)},
    }
    batches = ShuffledRows(train_rows, collate, data.batch_size * config.run.gradient_accumulation, config.run.seed)
    callbacks = build_callbacks(config, workspace, shadow, log)
    strategy = make_strategy(config.strategy.name)
    setup = replace(
        setup_of(config, model),
        longest=max(len(row.ids) for row in (*train_rows, *held_out)),
        most_learned=max(len(row.ids) - row.prompt_tokens for row in (*train_rows, *held_out)),
    )
    return facts, Trainer(engine, setup, strategy, batches, callbacks, config.run.max_steps, config.run.seed, facts)


def setup_of(config: TrainConfig, model: ModelSection) -> SupervisedSetup:
    """What the engine is set up by; `model` is the section whose base was found in the workspace or the project."""
    return SupervisedSetup(
        model=model,
        engine=config.engine,
        micro_batch=config.data.batch_size,
        seed=config.run.seed,
        devices=config.run.device_pref,
        precision=Precision(config.run.mixed_precision),
    )


def _rows(
    name: str,
    evaluation: bool,
    config: TrainConfig,
    workspace: Workspace,
    tokenizer: PreTrainedTokenizerBase,
    notice: Callable[[str], None],
) -> list[EncodedRow]:
    path = workspace.path(name)
    if ensure_rows(path, evaluation):
        notice(f"{name}: was missing; minimal data made up, good for trying the machinery out and nothing else")
    return encode_rows(JSONLReader(path), tokenizer, config.data.max_length, name)
