"""The callbacks that a configuration names, in the one order in which they work together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rc1_lib.training import train_config
from rc1_lib.training.api import Callback
from rc1_lib.training.callbacks.checkpoints import Checkpoints, SaveRule
from rc1_lib.training.callbacks.early_stop import EarlyStop
from rc1_lib.training.callbacks.eval_shadow import EvalShadow
from rc1_lib.training.callbacks.grad_clip import GradClip
from rc1_lib.training.callbacks.logs import Logging
from rc1_lib.training.callbacks.lr_schedule import LRSchedule
from rc1_lib.training.callbacks.trackers import trackers_of
from rc1_lib.training.checkpoint.retention import KeepRule
from rc1_lib.training.run_paths import LEDGER, TENSORBOARD, TRACKERS, small_metrics
from rc1_lib.training.train_config import TrainConfig
from rc1_lib.training.train_log import TrainLog
from rc1_lib.workspace.artifacts import Workspace

ORDER = ("grad_clip", "lr_schedule", "eval_shadow", "early_stop", "logging", "checkpoint")
"""A step is evaluated before it is judged and logged, and logged before it is saved."""


def build_callbacks(
    config: TrainConfig, workspace: Workspace, held_out: Sequence[dict[str, Any]], log: TrainLog
) -> list[Callback]:
    """What `config.callbacks` names, whatever order it is named in.

    `engine.max_grad_norm` clips also where `grad_clip` is not named: a key that is set is never without effect.
    """
    built = [_build(section, config, workspace, held_out, log) for section in config.callbacks]
    if config.engine.max_grad_norm is not None and all(callback.name != "grad_clip" for callback in built):
        built.append(GradClip(config.engine.max_grad_norm))
    return sorted(built, key=lambda callback: ORDER.index(callback.name))


def _build(
    section: train_config.CallbackSection,
    config: TrainConfig,
    workspace: Workspace,
    held_out: Sequence[dict[str, Any]],
    log: TrainLog,
) -> Callback:
    run = config.run
    match section:
        case train_config.EarlyStop():
            return EarlyStop(section.metric, section.patience, section.min_delta, section.higher_is_better)
        case train_config.LRSchedule():
            return LRSchedule(section.kind, section.warmup_steps)
        case train_config.GradClip():
            bound = section.max_norm if section.max_norm is not None else config.engine.max_grad_norm
            assert bound is not None, "the configuration has checked that there is one"
            return GradClip(bound)
    match section.name:
        case "logging":
            trackers = trackers_of(config.tracking, workspace.path(TRACKERS), workspace.path(run.output_dir).name)
            return Logging(workspace.path(small_metrics(workspace)), workspace.path(TENSORBOARD), log, trackers)
        case "eval_shadow":
            return EvalShadow(held_out, run.eval_steps)
        case "checkpoint":
            rule = SaveRule(run.save_steps, run.save_minutes)
            keep = None if run.keep_last is None else KeepRule(run.keep_last)
            return Checkpoints(workspace.path(run.output_dir), workspace.path(LEDGER), rule, keep, log)
