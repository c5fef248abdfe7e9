"""`rc1 train --config configs/train_local.yaml`: train on rows of input and output, without a pool or a ticket.

It uses the same loop and engines as a run: PPO on the policy's own answers (`row_episodes`), or learning the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from transformers import PreTrainedTokenizerBase

from rc1_lib.config.engines import own_name
from rc1_lib.config.file import flatten
from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.updates import Steps
from rc1_lib.training import train_config
from rc1_lib.training.another_run import Differs, check_no_other_run, differences, state_of_run
from rc1_lib.training.api import Callback, Setup, Strategy, make_engine, make_strategy
from rc1_lib.training.base_model import base_fingerprint, load_tokenizer
from rc1_lib.training.callbacks.checkpoints import Checkpoints, SaveRule
from rc1_lib.training.callbacks.early_stop import EarlyStop
from rc1_lib.training.callbacks.eval_shadow import EvalShadow, batch_metrics
from rc1_lib.training.callbacks.logs import Logging, TrainLog
from rc1_lib.training.callbacks.lr_schedule import LRSchedule
from rc1_lib.training.callbacks.trackers import check_trackers, trackers_of
from rc1_lib.training.checkpoint.atomic_folder import LATEST
from rc1_lib.training.checkpoint.retention import KeepRule, resolve_named
from rc1_lib.training.checkpoint.save_load import describe_newest
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.labelled_rows import ShuffledRows, encode_rows, read_rows
from rc1_lib.training.made_up_rows import ensure_rows
from rc1_lib.training.models import resolved_base
from rc1_lib.training.process import process_values, restore_process
from rc1_lib.training.resource_errors import FROM_ROWS, naming_breakdowns
from rc1_lib.training.row_episodes import RowPPO, answers_on, as_prompts, run_of
from rc1_lib.training.run_paths import (
    LEDGER,
    METRICS,
    TENSORBOARD,
    TRACKERS,
    check_small_output,
    small_effective,
    small_metrics,
)
from rc1_lib.training.train_config import ModelSection, TrainConfig, check_of_rows, load_train_config, plays
from rc1_lib.training.trainer import Trainer
from rc1_lib.workspace.artifacts import Workspace, write_text
from rc1_lib.workspace.file_hashes import sha256_file
from rc1_lib.workspace.folder import holding

_ORDER = ("lr_schedule", "eval_shadow", "early_stop", "logging", "checkpoint")
"""Order of the callbacks: evaluate a step before judging and logging it, and log it before saving it."""
_FREE = (
    "run.output_dir", "run.log_file", "run.save_steps", "run.save_minutes", "run.keep_last", "run.grace_s",
    "run.max_steps",
)  # fmt: skip
"""Keys that a resumed run may change, because they do not affect what a step learns."""
_UNUSED = ("target_kl", "clip_coef")
"""Keys of the section `engine` that engines for demonstrations do not use."""
_NOTHING_LEFT = "No checkpoint was written: `callbacks` does not list `checkpoint`"


@dataclass(frozen=True, slots=True)
class SmallResult:
    """How training ended: finished steps, last checkpoint (None without that callback), and why it stopped early."""

    step: int
    checkpoint: Path | None
    stop_reason: str | None


def train_small(
    config_path: Path,
    workspace: Workspace,
    resume: str | None,
    overrides: Sequence[str] = (),
    say: Callable[[str], None] = print,
    *,
    start_over: bool = False,
) -> SmallResult:
    """Train with a small local configuration.

    Args:
        config_path: the YAML file.
        workspace: all paths are relative to it.
        resume: checkpoint to resume from: `latest`, a step or a path. None starts from the base.
        overrides: `a.b=c`, applied over the file.
        say: called with notices, which are also logged.
        start_over: remove checkpoints and metrics of another run. Otherwise they are an error.

    Raises:
        RC1Error: if the configuration, data, base or checkpoint cannot be used, the folder holds another run's
            checkpoints, or another run holds the workspace.
        DivergedError: if a number is NaN or infinite.
        BreakdownError: if the disk or memory is full.
    """
    config = load_train_config(config_path, overrides)
    check_of_rows(config)
    check_small_output(workspace, config.run.output_dir)
    with holding(workspace, f"a training by {config_path.name}"):
        check_trackers(config.tracking)
        log = TrainLog(workspace.path(config.run.log_file))

        def notice(text: str) -> None:
            say(text)
            log.line(text)

        return _train(config, workspace, resume, start_over, log, notice)


def _train(
    config: TrainConfig,
    workspace: Workspace,
    resume: str | None,
    start_over: bool,
    log: TrainLog,
    notice: Callable[[str], None],
) -> SmallResult:
    folder = workspace.path(config.run.output_dir)
    model = config.model.model_copy(update={"base": resolved_base(config.model.base, workspace, "model.base")})
    write_text(
        workspace.path(small_effective(workspace)), yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
    )
    if (metrics := small_metrics(workspace)) != METRICS:
        notice(f"this workspace holds the metrics of a run of RC1, which stay; this training writes to {metrics}")
    for key in () if plays(config) else _UNUSED:
        if getattr(config.engine, key) is not None:
            notice(f"engine.{key}: not used by {config.engine.name}")
    if plays(config) and model.lora.dropout:
        notice(f"model.lora.dropout: {model.lora.dropout:g} has no effect: PPO samples and learns with one policy")
    if model.trust_remote_code:
        notice("model.trust_remote_code: true has no effect: code that comes with a model never runs")
    if config.data.padding_side == "left":
        notice("data.padding_side: left has no effect; rows are padded on the right, which learns the same")
    made = partial(_trainer, config, model, workspace, log, notice)
    with naming_breakdowns("Nothing was trained yet", FROM_ROWS):
        trainer = made()
    saves = any(callback.name == "checkpoint" for callback in config.callbacks)
    differs = partial(differences, facts=dict(trainer.facts))
    left = partial(describe_newest, folder) if saves else _NOTHING_LEFT
    with naming_breakdowns(left, FROM_ROWS):
        if saves:
            check_no_other_run(folder, workspace, small_metrics(workspace), differs, start_over, notice)
        state = None
        if resume is not None:
            state, trainer = _resumed(resume, config, workspace, differs, notice), made()  # with its threads
        trainer.facts["process"] = process_values()  # resuming may have changed the number of threads
        step = trainer.fit(state)
    latest = folder / LATEST
    # Without the callback, `latest` can only point to a checkpoint of an earlier run.
    return SmallResult(step, latest.resolve() if saves and latest.exists() else None, trainer.stop_reason)


def _trainer(
    config: TrainConfig, model: ModelSection, workspace: Workspace, log: TrainLog, notice: Callable[[str], None]
) -> Trainer:
    """Create the trainer. Its facts determine the run and are in every checkpoint."""
    data, run, setup = config.data, config.run, setup_of(config, model)
    tokenizer = load_tokenizer(model)
    train_rows, held_out = (
        _rows(name, evaluation, config, workspace, tokenizer, notice)
        for name, evaluation in ((data.train_path, False), (data.eval_path, True))
    )
    strategy: Strategy = make_strategy(config.strategy.name) if setup.run is None else RowPPO(setup.run)
    published = {} if setup.run is None else {"published": _published(setup.run)}
    return Trainer(
        make_engine(config.engine.name, notice),
        setup,
        strategy,
        ShuffledRows(train_rows, setup.rows, run.seed, "demonstrations" if setup.run is None else "rows"),
        callbacks_of(config, workspace, held_out, log),
        run.max_steps,
        run.seed,
        {
            "config": _decisive(config),
            "base": base_fingerprint(model),
            "data": {name: sha256_file(workspace.path(name)) for name in (data.train_path, data.eval_path)},
            **published,
        },
        run.grace_s,
    )


def setup_of(config: TrainConfig, model: ModelSection) -> Setup:
    """Create the engine's setup: each training step is one optimizer step.

    Args:
        config: the whole file.
        model: its model section, with the base resolved to a path.
    """
    data, run = config.data, config.run
    if plays(config):
        played = run_of(config, data.batch_size * run.gradient_accumulation)
        still = model.model_copy(update={"lora": model.lora.model_copy(update={"dropout": 0.0})})
        own = Setup.of_run(played, model.base, run.seed)
        return replace(own, model=still, precision=run.mixed_precision, devices=run.device_pref)
    update = Steps.model_construct(
        minibatches=1,
        micro_tokens=data.batch_size * data.max_length,
        max_grad_norm=math.inf if (norm := config.engine.max_grad_norm) is None else norm,  # no file can set inf
    )
    return Setup(
        model=model,
        lr=config.engine.lr,
        update=update,
        rows=data.batch_size * run.gradient_accumulation,
        precision=run.mixed_precision,
        seed=run.seed,
        devices=run.device_pref,
    )


def _rows(
    name: str,
    evaluation: bool,
    config: TrainConfig,
    workspace: Workspace,
    tokenizer: PreTrainedTokenizerBase,
    notice: Callable[[str], None],
) -> Sequence[Any]:
    path = workspace.path(name)
    if ensure_rows(path, evaluation):
        notice(f"{name}: not found; RC1 wrote a few synthetic rows, only to try the pipeline")
    rows = list(read_rows(path))  # report invalid rows before tokenizing any
    return as_prompts(rows) if plays(config) else encode_rows(rows, tokenizer, config.data.max_length, name)


def callbacks_of(config: TrainConfig, workspace: Workspace, held_out: Sequence[Any], log: TrainLog) -> list[Callback]:
    """Create the configured callbacks in their fixed order. `grad_clip` is not one; the update clips."""
    run, built = config.run, list[Callback]()
    for section in config.callbacks:
        match section:
            case train_config.EarlyStop():
                built.append(EarlyStop(section.metric, section.patience, section.higher_is_better))
            case train_config.LRSchedule():
                built.append(LRSchedule(section.kind, section.warmup_steps))
            case train_config.Plain(name="logging"):
                trackers = trackers_of(config.tracking, workspace.path(TRACKERS), workspace.path(run.output_dir).name)
                metrics = workspace.path(small_metrics(workspace))
                built.append(Logging(metrics, workspace.path(TENSORBOARD), log, trackers))
            case train_config.Plain(name="eval_shadow"):
                size = config.data.batch_size
                batches = [{"demonstrations": held_out[at : at + size]} for at in range(0, len(held_out), size)]
                look = answers_on(held_out) if plays(config) else batch_metrics(batches)
                built.append(EvalShadow(look, run.eval_steps))
            case train_config.Plain(name="checkpoint"):
                rule = SaveRule(run.save_steps, run.save_minutes)
                keep = None if run.keep_last is None else KeepRule(run.keep_last)
                built.append(Checkpoints(workspace.path(run.output_dir), workspace.path(LEDGER), rule, keep, log))
    return sorted(built, key=lambda callback: _ORDER.index(callback.name))


def _resumed(
    name: str, config: TrainConfig, workspace: Workspace, differs: Differs, notice: Callable[[str], None]
) -> CheckpointState:
    """Load the state to resume from, and restore its number of threads.

    Raises:
        CheckpointError: if there is no such checkpoint, or naming in what it differs from this run.
    """
    kept, ledger = f"run.keep_last ({config.run.keep_last})", workspace.path(LEDGER)
    path = resolve_named(name, workspace.path(config.run.output_dir), workspace, ledger, kept, "name one of them")
    state = state_of_run(path, ledger, differs)
    for shown in restore_process(state.values["process"]):
        notice(shown)
    notice(f"resumed from {path.name}; the settings of this command match those of the checkpoint")
    return state


def _published(run: RunConfig) -> dict[str, Any]:
    """Return what PPO takes from the published configuration, beyond what the small file says."""
    training = run.training
    return {
        "ppo": training.ppo.model_dump(mode="json"),
        "kl_stop": training.update.kl_stop,
        "kl_coef": run.kl_coef,
        "temperature": training.rollout.temperature,
    }


def _decisive(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that affect what a step learns. `run.max_steps` does so only if the learning rate decays."""
    tree = config.model_dump(mode="json")
    # Callbacks without settings only observe.
    acting = [callback for callback in tree["callbacks"] if len(callback) > 1]
    falls = any(callback["name"] == "lr_schedule" and callback["kind"] != "constant" for callback in acting)
    leaves = flatten(tree) | {"callbacks": acting, "engine.name": own_name(config.engine.name)}
    return {key: value for key, value in leaves.items() if key not in _FREE or (falls and key == "run.max_steps")}
