"""A PPO run: what determines it, and how to train it up to a step.

Configuration, seed, pool and reference policy determine a run. Every checkpoint carries them, and a run resumes only
from its own checkpoints. Training up to a step gives the same bytes in one go, in segments, or killed and restarted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PretrainedConfig

from rc1_lib.config.curriculum import EarlyStopping
from rc1_lib.config.engines import ENGINES, own_name
from rc1_lib.config.step_metrics import HELD_OUT
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge.maintenance import paid_in
from rc1_lib.pool.derived import TEMPLATES
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.git import code_words
from rc1_lib.provenance.pinned_files import check_vouched
from rc1_lib.run import Run
from rc1_lib.training.another_run import check_no_other_run, differences, refuse_others, state_of_run
from rc1_lib.training.api import Callback, Setup, Strategy, make_engine, make_strategy
from rc1_lib.training.base_model import base_config, end_ids, load_tokenizer
from rc1_lib.training.callbacks.cap import PausedError, SpendingCap, paused_at
from rc1_lib.training.callbacks.checkpoints import Checkpoints, SaveRule
from rc1_lib.training.callbacks.collapse import OF_SCORES, CollapsedError, CollapseGuard
from rc1_lib.training.callbacks.early_stop import EarlyStop
from rc1_lib.training.callbacks.eval_shadow import shadow_evaluations
from rc1_lib.training.callbacks.logs import Logging, TrainLog
from rc1_lib.training.callbacks.lr_schedule import LRSchedule
from rc1_lib.training.callbacks.trackers import check_trackers, trackers_of
from rc1_lib.training.chat_contract import check_chat_contract
from rc1_lib.training.chat_format import ChatFormat, format_of
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import written_by
from rc1_lib.training.checkpoint.manifest import folder_name, steps
from rc1_lib.training.checkpoint.retention import keep_rule_of
from rc1_lib.training.checkpoint.save_load import describe_newest, finish_interrupted, load_to_resume
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.control import FACT, Control, Controlled, controlled
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.derived import vouched_base
from rc1_lib.training.device import get_device
from rc1_lib.training.episode_judge import EpisodeJudge, check_grades, checks_of
from rc1_lib.training.models import fingerprint_of, model_section
from rc1_lib.training.process import process_values
from rc1_lib.training.ranks.shards import on_one_device, processes_of
from rc1_lib.training.resource_errors import WHILE_LEARNING, naming_breakdowns
from rc1_lib.training.rows import Selection, select_rows
from rc1_lib.training.run_paths import LEDGER, LOG, TRACKERS, paths_of
from rc1_lib.training.train_arguments import named_checkpoint
from rc1_lib.training.trainer import Trainer
from rc1_lib.training.usable import check_memory, check_usable, check_warm_start
from rc1_lib.training.warm_start import Reference, reference_of, warm_start_due
from rc1_lib.workspace.artifacts import sha256_json, sha256_tree
from rc1_lib.workspace.file_hashes import sha256_file

_FREE = (
    "cap", "checkpoints", "collapse", "control", "eval_shadow", "held_out", "learnability", "parity", "processes",
    "segment_steps", "tracking", "vllm",
)  # fmt: skip
"""Keys of the section `training` that do not affect what a step learns."""
_LOOKED_AT = ("eval_shadow", "held_out")
"""Two of these keys that do matter if `training.early_stop` ends the run by a metric on held-out rows."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that determines a run.

    Attributes:
        run: workspace and configuration.
        form: chat format of the base's tokenizer.
        selection: training rows and held-out rows.
        reference: the initial policy.
        judge: scores episodes; None if the judge has no weight in the reward.
        control: the uninformative reward of a control run; None in a real run.
    """

    run: Run
    form: ChatFormat
    selection: Selection
    reference: Reference
    judge: EpisodeJudge | None
    control: Control | None = None

    def setup(self, seed: int) -> Setup:
        """Return the setup of the engine."""
        return Setup.of_run(self.run.config, self.reference.base, seed)

    def strategy(self, seed: int) -> Strategy:
        """Return the strategy that prepares the batches of a seed."""
        training = self.run.config.training
        made = make_strategy(training.strategy, self.judge, group_size=training.group_size)
        return made if self.control is None else Controlled(made, self.control, seed)

    def under(self, control: Control) -> Prepared:
        """Return a control run next to this one: same rows and initial policy, but its own workspace."""
        return replace(self, run=controlled(self.run, control), judge=None, control=control)

    def facts(self, seed: int) -> dict[str, Any]:
        """Return what determines every bit of a run, as its checkpoints carry it."""
        return {
            **configured_facts(self.run, seed),
            "reference": self.reference.sha256,
            "pool": self.selection.pool_sha256,
            "rows": _rows_sha256(self.selection),
            "judge": None if self.judge is None else self.judge.sha256,
            FACT: None if self.control is None else self.control.kind,
        }


def configured_facts(run: Run, seed: int) -> dict[str, Any]:
    """Return what determines a run before anything is prepared: settings, seed and code."""
    config = run.config.model_dump(mode="json")
    free = {*_FREE, *_updates_of_others(config["training"]["engine"])}
    if (run.config.training.early_stop.metric or "").startswith(HELD_OUT):
        free -= {*_LOOKED_AT}
    training = {key: value for key, value in config["training"].items() if key not in free}
    training["engine"] = own_name(training["engine"])
    top = ("priority_sampling", "use_overclar_penalty", "overclar", "difficulty_beta", "target_kl", "steps", "lr")
    more = ("clip", "kl_coef", "batch_size", "rollout_len", "finetune")
    return {
        "config": {**{key: config[key] for key in (*top, *more)}, "training": training},
        "seed": seed,
        "code": code_sha256("training"),
    }


def known_facts(run: Run, seed: int, selection: Selection | None = None) -> dict[str, Any]:
    """Return the part of the facts that is known before the run is prepared, with those of its rows if selected."""
    pool = run.workspace.path(run.config.seed_pool)
    found = configured_facts(run, seed) | ({"pool": sha256_file(pool)} if pool.is_file() else {})
    return found if selection is None else found | {"rows": _rows_sha256(selection)}


def _rows_sha256(selection: Selection) -> str:
    return sha256_json([[row["id"], row["bucket"]] for row in selection.train])


def check_own(run: Run, seed: int, facts: Mapping[str, Any], start_over: bool, notice: Callable[[str], None]) -> None:
    """Refuse to train over checkpoints of another run, or remove them.

    Args:
        run: workspace and configuration.
        facts: what determines this run, or `known_facts`.
        start_over: remove the other run's checkpoints.
        notice: called with what was removed.

    Raises:
        CheckpointError: if there are checkpoints of another run and `start_over` is False.
    """
    places, place = paths_of(run, seed), run.workspace
    differs = partial(differences, facts=facts)
    check_no_other_run(place.path(places.checkpoints), place, places.metrics, differs, start_over, notice)


def prepare(run: Run) -> Prepared:
    """Select the rows and make the warm start if it is missing or out of date.

    Args:
        run: workspace and configuration.

    Raises:
        RC1Error: if the pool cannot be used, the base does not fit or cannot be trained with this configuration, its
            chat template would not render what is learned, the judge cannot be asked for scores, or a launcher's number
            of processes does not divide the shards.
    """
    check_trackers(run.config.training.tracking)
    processes_of(run.config.training)
    judge = EpisodeJudge(run) if run.config.training.pays_judge else None
    _check_templates(run)
    form, shape = usable_base(run)
    selection = select_rows(run, form)
    if warm_start_due(run):
        _check_room(run, shape)
    return Prepared(run, form, selection, reference_of(run, selection.train, form), judge)


def usable_base(run: Run) -> tuple[ChatFormat, PretrainedConfig]:
    """Return the base's chat format and its own configuration; its weights are not read.

    Raises:
        RC1Error: if it cannot be read or trained with this configuration, or its chat template would not render what is
            learned.
    """
    with vouched_base(run) as base:
        section = model_section(run.config, base)
        tokenizer = load_tokenizer(section)
        shape = base_config(section)
        ends = end_ids(base, shape)
    check_usable(run.config, shape)
    form = format_of(tokenizer, run.config.training)
    check_chat_contract(form, run.config, ends)
    return form, shape


def _check_room(run: Run, shape: PretrainedConfig) -> None:
    """Check before a warm start that both it and the engine after it fit into memory."""
    device = get_device()
    check_warm_start(shape, device)
    processes = on_one_device(processes_of(run.config.training))
    check_memory(Setup.of_run(run.config, run.config.base_model, run.config.seeds[0]), shape, device, processes)


def _check_templates(run: Run) -> None:
    """Check the templates against the ticket. Training does not read them, but the pool was worded with them."""
    templates = TEMPLATES.path(run)
    check_vouched(run, TEMPLATES.name, templates, sha256_tree(templates) if templates.is_dir() else None)


def check_start(prepared: Prepared, sha256: str) -> None:
    """Check that the initial policy is still the one that the runs began with.

    Raises:
        RC1Error: naming its folder.
    """
    if prepared.reference.sha256 != sha256:
        raise RC1Error(
            f"{prepared.run.workspace.name(Path(prepared.reference.base))}: not the initial policy of this training "
            f"(found SHA-256 {prepared.reference.sha256[:12]}, expected {sha256[:12]}); run the training again"
        )


def check_read(prepared: Prepared) -> None:
    """Check after loading that the initial policy's folder is still the one that was prepared and pinned.

    Raises:
        RC1Error: if it has changed or is gone.
    """
    run, start = prepared.run, Path(prepared.reference.base)
    if start.is_absolute() and not start.is_dir():
        raise RC1Error(f"{run.workspace.name(start)}: initial policy not found; run again to rebuild it")
    if start.is_absolute() and fingerprint_of(run.config, str(start)) != prepared.reference.sha256:
        raise RC1Error(
            f"{run.workspace.name(start)} has changed since this training was prepared; run again while nothing else "
            f"writes to the workspace"
        )


def advance(prepared: Prepared, seed: int, last: int, notice: Callable[[str], None] = print) -> Path:
    """Train up to step `last`, from the newest intact checkpoint of this run, or else from the start.

    Args:
        prepared: what determines the run.
        last: number of finished steps at the end; at most `steps`.
        notice: called with the checkpoint to resume from, and with those that cannot be used.

    Returns:
        The checkpoint of step `last`, or of the earlier step at which `training.early_stop` ended the run.

    Raises:
        RC1Error: if the configuration is rejected, checkpoints of another run are in the folder, or a live judge's
            grades differ from its baseline.
        PausedError: if a cap is reached. That step has a checkpoint.
        CollapsedError: if the policy has collapsed or its steps teach nothing. That step has a checkpoint.
        DivergedError: if a number is NaN or infinite.
        BreakdownError: if the disk or memory is full.
    """
    run, config = prepared.run, prepared.run.config
    if last > config.steps:
        raise ConfigError(f"step {last}: the configured `steps` are only {config.steps}; raise them")
    places = paths_of(run, seed)
    folder, facts = run.workspace.path(places.checkpoints), prepared.facts(seed)
    differs = partial(differences, facts=facts)
    left = partial(describe_newest, folder)
    with naming_breakdowns(left, WHILE_LEARNING):
        refuse_others(folder, run.workspace.path(LEDGER), differs)
        state = _newest(folder, run.workspace.path(LEDGER), facts, last, notice)
    log, early = TrainLog(run.workspace.path(LOG)), _early_stop(config.training.early_stop)
    without = () if prepared.control is None else OF_SCORES
    guard = CollapseGuard(config.training.collapse, run.workspace.path(places.metrics), without)
    if state is not None:
        writer = written_by(folder / folder_name(state.step), run.workspace.path(LEDGER))
        if writer not in (None, code_words()):
            log.line(f"seed {seed}: step {state.step} was written by {writer}, this is {code_words()}")

    def collapsed(step: int) -> CollapsedError:
        ended = f"ended at step {step} of {config.steps}: {guard.reason}"
        log.line(f"seed {seed}: {ended}")
        return CollapsedError(f"{ended}. {left(guard.since)}")

    if state is not None:
        guard.recall(state.step)
        if guard.reason and not _has_ended(early, state):
            raise collapsed(state.step)
    if state is not None and state.step == last:
        finish_interrupted(folder, last)
        return folder / folder_name(last)
    rule = SaveRule(config.training.checkpoints.every_steps, config.training.checkpoints.every_minutes)
    judging = run if prepared.judge is None else prepared.judge.run
    checks = checks_of(facts)
    cap = SpendingCap(config.training.cap, run.workspace.path(places.metrics), lambda: paid_in(judging, checks).usd)

    def pause(step: int, reason: str) -> PausedError:
        paused = paused_at(step, config.steps, reason, folder)
        log.line(f"seed {seed}: {paused}")
        return paused

    trainer = Trainer(
        make_engine(config.training.engine, notice),
        prepared.setup(seed),
        prepared.strategy(seed),
        Curriculum(prepared.selection.train, config.priority_sampling, config.prompts, seed),
        [
            _Segment(prepared, last),
            LRSchedule("linear", warmup_steps=0),  # as in transformers' `TrainingArguments`
            *shadow_evaluations(prepared.selection.shadow, config.training.eval_shadow),
            *early,
            Logging(
                run.workspace.path(places.metrics),
                run.workspace.path(places.tensorboard),
                log,
                trackers_of(config.training.tracking, run.workspace.path(TRACKERS), f"seed {seed}"),
            ),
            guard,
            cap,
            Checkpoints(folder, run.workspace.path(LEDGER), rule, keep_rule_of(config), log),
        ],
        config.steps,
        seed,
        facts | {"process": process_values() | {"threads": config.training.threads}},
        config.training.checkpoints.grace_s,
    )
    begin = 0 if state is None else state.step
    if not _has_ended(early, state):
        if reason := cap.reached(begin):
            raise pause(begin, reason)  # before the judge costs anything
        if prepared.judge is not None and (asked := check_grades(judging, checks)):
            log.line(f"seed {seed}: {asked}")
            if reason := cap.reached(begin):
                raise pause(begin, reason)
    began = time.monotonic()
    if config.training.rollout.sampler == "vllm":
        log.line(f"seed {seed}: vLLM samples; a resumed run starts from the same state but may sample other tokens")
    log.line(f"seed {seed}: from step {begin} to {last} of {config.steps}")
    with naming_breakdowns(left, WHILE_LEARNING):
        trainer.fit(state)
    if guard.reason and not any(one.stopped for one in early):
        raise collapsed(trainer.step)
    if trainer.step < last and any(one.stopped for one in early):
        log.line(f"seed {seed}: ended at step {trainer.step} of {config.steps}: {trainer.stop_reason}")
        return folder / folder_name(trainer.step)
    if trainer.step < last:
        raise pause(trainer.step, str(trainer.stop_reason))
    log.line(f"seed {seed}: step {last} after {time.monotonic() - began:.0f} s")
    return folder / folder_name(last)


def _early_stop(asked: EarlyStopping) -> list[EarlyStop]:
    """Return the configured callback, if any. Without one, checkpoints hold no state of it."""
    return [] if asked.metric is None else [EarlyStop(**asked.model_dump(), key="training.early_stop.metric")]


def _has_ended(early: Sequence[EarlyStop], state: CheckpointState | None) -> bool:
    """Whether `training.early_stop` ended the run at this checkpoint, so that nothing more may be spent."""
    if state is None:
        return False
    for one in early:
        one.load_state_dict(state.part("callbacks")[one.name])
    return any(one.ends(state.step) for one in early)


def has_begun(prepared: Prepared, seed: int) -> bool:
    """Whether there is an intact checkpoint of this run to resume from."""
    run = prepared.run
    folder, facts = run.workspace.path(paths_of(run, seed).checkpoints), prepared.facts(seed)
    return _newest(folder, run.workspace.path(LEDGER), facts, run.config.steps, lambda _: None) is not None


def resumable(prepared: Prepared, seed: int, name: str) -> Path:
    """Return the checkpoint that a user names to resume from.

    Args:
        prepared: what determines the run.
        name: `latest`, a step, or a path, relative to the workspace or as written.

    Raises:
        CheckpointError: if it does not exist, is damaged, or belongs to another run; then naming what differs.
    """
    place = prepared.run.workspace
    path = named_checkpoint(prepared.run, seed, name)
    state_of_run(path, place.path(LEDGER), partial(differences, facts=prepared.facts(seed)))
    return path


def _newest(
    folder: Path, ledger: Path, facts: dict[str, Any], last: int, notice: Callable[[str], None]
) -> CheckpointState | None:
    for step, path in sorted(steps(folder).items(), reverse=True):
        if step > last:
            continue
        try:
            state = load_to_resume(path, ledger)
        except CheckpointError as error:
            notice(f"not used: {error}")
            continue
        if not differences(state.values, facts):
            notice(f"resumes from {path.name}")
            return state
    return None


def _updates_of_others(engine: str) -> set[str]:
    """Return the sections of `training` that only other engines' updates read."""
    return {name for spec in ENGINES.values() for name in spec.sections} - {*ENGINES[own_name(engine)].sections}


class _Segment(Callback):
    """Checks what was loaded against what was prepared, and stops training at a step."""

    name = "stop_at"

    def __init__(self, prepared: Prepared, last: int) -> None:
        self._prepared, self._last = prepared, last

    def on_start(self, trainer: Trainer) -> None:
        """Refuse to train from anything but what was prepared."""
        check_read(self._prepared)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Stop at the end of the segment."""
        if trainer.step == self._last:
            trainer.stop("the segment is done")
