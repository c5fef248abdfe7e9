"""`rc1 train --random-base`: a few steps of the configured training on random weights of the configured shape.

It asks for no ticket and proves nothing about a policy. It shows that this machine holds the shape, how long a step
takes, and that the code that will train the real weights plays, learns and saves. Everything that it writes but its
report lies in a workspace of its own, and its base, checkpoints and metrics bear its mark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import PretrainedConfig

from rc1_lib.run import Run
from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.breakdown import TRYING_OUT, naming_breakdowns
from rc1_lib.training.chat_format import ChatFormat, format_of
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.device import get_device
from rc1_lib.training.memory_estimate import check_memory, estimate_memory
from rc1_lib.training.metrics_log import MetricsLog
from rc1_lib.training.models import model_section
from rc1_lib.training.ppo_run import Prepared, advance, prepare
from rc1_lib.training.ranks.processes import on_one_device, processes_of
from rc1_lib.training.rows import select_rows
from rc1_lib.training.run_paths import TRIAL, paths_of
from rc1_lib.training.side_run import side_run
from rc1_lib.training.trial.random_base import write_random_base
from rc1_lib.training.trial.rows import write_trial_rows
from rc1_lib.training.trial.shapes import shape_of
from rc1_lib.training.trial_mark import RANDOM_BASE
from rc1_lib.training.usable import check_usable
from rc1_lib.workspace.artifacts import PROJECT_ROOT, write_json

REPORT = "reports/trial_random_base.json"
SAYS = "trial on random weights: no policy, no evaluation, no ticket"
"""What every view of a trial says."""
_BASE = "base"
_EMBEDDED = "models/embedded"
_NOTHING_LEFT = "Nothing was trained yet"


def look_at_base(run: Run) -> tuple[PretrainedConfig, ChatFormat]:
    """What a trial takes of the configured base: its shape, narrowed, and its tokenizer's chat format.

    Nothing is written, so that a command asks before it starts a server; `prepare_trial` asks again.

    Raises:
        RC1Error: when the shape is not known, cannot be had or is none that can be trained so, or the tokenizer cannot
            be loaded or has no chat template.
    """
    trial = run.config.training.trial
    shape = shape_of(_named(run), trial.narrower, trial.layers)
    check_usable(run.config, shape, get_device())
    tokenizer = load_tokenizer(model_section(run.config, str(_tokenizer_of(run))))
    return shape, format_of(tokenizer, run.config.training)


def prepare_trial(run: Run) -> Prepared:
    """Write base and rows of a trial where they are missing, and prepare its run.

    Args:
        run: whose shape and settings are tried out.

    Raises:
        RC1Error: as `look_at_base`; or when the shape does not fit into memory.
        BreakdownError: when the disk or memory is full.
    """
    shape, form = look_at_base(run)
    beside = _beside(run)
    with naming_breakdowns(_NOTHING_LEFT, TRYING_OUT):
        write_trial_rows(beside.workspace, beside.config, run.workspace.find(run.config.pool.templates_dir))
    device, longest = get_device(), select_rows(beside, form).longest
    memory = estimate_memory(beside.config, shape, device, longest)
    sharing = on_one_device(processes_of(beside.config.training))
    check_memory(memory, device, sharing)  # before gigabytes of weights are written
    with naming_breakdowns(_NOTHING_LEFT, TRYING_OUT):
        write_random_base(beside.workspace.path(_BASE), shape, form.tokenizer, run.config.seeds[0])
    return prepare(beside, trial=RANDOM_BASE)


def run_trial(run: Run, notice: Callable[[str], None] = print) -> dict[str, Any]:
    """Train the trial, going on from what a killed one has finished, and write and return its report.

    Args:
        run: whose shape and settings are tried out.
        notice: told what is gone on from.

    Raises:
        RC1Error: when the configuration is refused, or the shape does not fit into memory.
    """
    prepared = prepare_trial(run)
    beside, seed = prepared.run, run.config.seeds[0]
    path = advance(prepared, seed, beside.config.steps, notice)
    lines = MetricsLog(beside.workspace.path(paths_of(beside, seed).metrics)).read()
    report = {
        "trial": RANDOM_BASE,
        "says": SAYS,
        "base_model": run.config.base_model,
        "narrower": run.config.training.trial.narrower,
        "tokenizer": run.workspace.name(_tokenizer_of(run)),
        "checkpoint": {"path": run.workspace.name(path), "sha256": fingerprint(path)},
        "steps": lines,
    }
    write_json(run.workspace.path(REPORT), report)
    return report


def _named(run: Run) -> str:
    """The configured base: a folder of the workspace or the project, else a name."""
    folder = run.workspace.find(run.config.base_model)
    return str(folder) if folder.is_dir() else run.config.base_model


def _tokenizer_of(run: Run) -> Path:
    """The base's own tokenizer where the base is a folder; else the embedded base's, which stands in for it."""
    folder = run.workspace.find(run.config.base_model)
    return folder if folder.is_dir() else PROJECT_ROOT / _EMBEDDED


def _beside(run: Run) -> Run:
    """The trial's own run: few steps, in each of which the policy learns, nobody to ask, and a workspace of its own."""
    training = run.config.training
    beside = side_run(
        run,
        TRIAL,
        training.trial.steps,
        warm_start=training.warm_start.model_copy(update={"steps": 0}),
        ppo=training.ppo.model_copy(update={"value_warm_up": 0}),
        languages=("en",),
        eval_shadow=training.eval_shadow.model_copy(update={"every_steps": None}),  # no row is held out
    )
    base = {"base_model": str(beside.workspace.path(_BASE))}
    return replace(beside, config=beside.config.model_copy(update=base), vouched=None)
