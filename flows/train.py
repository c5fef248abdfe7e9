"""The training: ticket, warm start (SFT), PPO in segments for every seed, evaluation and its gate.

Run it with `rc1 train`, or with `prefect deployment run rc1/train` while `rc1 serve` runs. Start a
killed run again to resume it: finished segments are content-hashed and verified byte for byte, the interrupted one
continues from its newest intact checkpoint, and the final bytes are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.failures import leave_failure
from flows.run_names import named
from rc1_lib.check_words import gate_sentence
from rc1_lib.config.engines import ControlKind
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.control import GATE as CONTROL
from rc1_lib.evaluation.gate import GATE
from rc1_lib.evaluation.plays import forget_plays
from rc1_lib.forecast.judge_cost import check_training_cost
from rc1_lib.forecast.too_few import check_enough_held_out
from rc1_lib.preflight.round_report import write_git_state
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import Status
from rc1_lib.run import Run, open_recorded_run
from rc1_lib.scale_up.conditions import check_grown
from rc1_lib.training.train_arguments import Seeds, check_control, chosen_seeds, has_checkpoints
from rc1_lib.workspace.folder import holding
from tasks.calibrate import read_report
from tasks.endings import (
    CACHED,
    CONTROL_PASSED,
    GATES_FAILED,
    ONE_AT_A_TIME,
    POLICY_IMPROVED,
    POLICY_TRAINED,
    REFUSED,
    outcome,
)
from tasks.evaluation import control as control_task
from tasks.evaluation import evaluation
from tasks.reports import verify, verify_again
from tasks.train import Facts, Segment, keep_best, resume, segment, warm_start
from tasks.training_report import Story, Trained, report_training


@flow(
    name="rc1",
    flow_run_name=named("train"),
    task_runner=ONE_AT_A_TIME,
    on_failure=[leave_failure],
    on_crashed=[leave_failure],
)
def train(
    profile: str | None = None,
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    seeds: Seeds = None,
    resume_from: str | None = None,
    evaluate: bool = True,
    control: ControlKind | None = None,
    start_over: bool = False,
    judge_cost_agreed: bool = False,
) -> State[Any]:
    """Train a policy, if the ticket allows it, and compare it with the initial policy.

    Args:
        profile: `local` or `prod`; default: `RUN_MODE`, else that of the file.
        config: the configuration file; default: the settings that the workspace has recorded, else the profile's own.
        overrides: settings `a.b=c` on top. Those that decide what a ticket vouches for make it not match.
        workspace: where everything is read and written; default: the current folder, if it is a workspace.
        seeds: some of the configuration's `seeds`, or `all`; default: the first.
        resume_from: start from this checkpoint (`latest`, a step, or a path); one of another run is an error. Default:
            continue from the newest intact checkpoint of the same run, if there is one.
        evaluate: play the held-out prompts after training.
        control: instead, train a few steps on an uninformative reward (`random`, `constant`), without touching a real
            run. It fails if success rises, since then the evaluation leaks.
        start_over: remove the checkpoints and metrics of another run, which are otherwise an error.
        judge_cost_agreed: whether a person has agreed to what the judge may cost; otherwise more than
            `judge.ask_above_usd` is an error before the first call.
    """
    try:
        run = open_recorded_run(profile, config, overrides, workspace, samples=True)
        chosen = chosen_seeds(run, seeds, resume_from, start_over=start_over)
        with holding(run.workspace, "a training" if control is None else f"a control of training ({control})"):
            if control is not None:
                check_control(run, control, resume_from, evaluate=evaluate, start_over=start_over)
                return _controlled(run, chosen, control)
            return _train(run, chosen, resume_from, evaluate, start_over, judge_cost_agreed)
    except RC1Error as refusal:
        return Failed(name=REFUSED, message=str(refusal))


def _train(
    run: Run,
    seeds: Sequence[int],
    resume_from: str | None,
    evaluate: bool,
    start_over: bool,
    judge_cost_agreed: bool,
) -> State[Any]:
    story = Story()
    with story.timed("ticket"):
        verified = outcome(verify(run, return_state=True))
        run = replace(run, vouched=verified["vouched"])
    check_grown(run)
    if evaluate and (start_over or not has_checkpoints(run, seeds)):
        check_enough_held_out(run)
    check_training_cost(run, len(seeds), evaluate=evaluate, agreed=judge_cost_agreed)
    run.write_effective_config()
    write_git_state(run)
    with story.timed("warm start"):
        start = outcome(warm_start(run, seeds, evaluate, start_over, return_state=True))
    try:
        with story.timed("training"):
            for seed in seeds:
                story.trained.append(trained(run, seed, start["facts"][str(seed)], resume_from))
        sentence = _what_was_trained(story)
        if not evaluate:
            ending: State[Any] = Completed(name=POLICY_TRAINED, message=f"{sentence}; not evaluated")
        else:
            with story.timed("evaluation"):
                ending = _evaluated(run, story, start["reference"], sentence)
    except Exception as fault:  # an earlier training's report would say that the policy passed
        with suppress(OSError):  # a full disk has ended it, and what says so must not be lost
            report_training(run, {"ticket": verified["carried"], **story.body(_stopped(fault), start)})
        raise
    report_training(run, {"ticket": verified["carried"], **story.body(ending, start)})
    if story.evaluation is not None:
        forget_plays(run)
    return ending


def _stopped(fault: Exception) -> State[Any]:
    """Return how a training ended that was refused or broke; a fault's own text may hold anything."""
    if isinstance(fault, RC1Error):
        return Failed(name=REFUSED, message=str(fault))
    return Failed(message=f"ended by a fault ({type(fault).__name__})")


def _what_was_trained(story: Story) -> str:
    by_steps: dict[int, list[str]] = {}
    for one in story.trained:
        by_steps.setdefault(one.checkpoint["last"], []).append(str(one.seed))
    return " and ".join(f"{steps} steps of seed {', '.join(seeds)}" for steps, seeds in by_steps.items())


def _controlled(run: Run, seeds: Sequence[int], kind: ControlKind) -> State[Any]:
    """Run a control instead of a training; it does not touch segments, reports or checkpoints of real runs."""
    run = replace(run, vouched=outcome(verify(run, return_state=True))["vouched"])
    check_enough_held_out(run)
    state = control_task(run, kind, seeds, return_state=True)
    found = read_report(CONTROL, state)
    if found.fault:
        outcome(state)
        raise RuntimeError(f"the control: {found.fault}")
    sentence = f"control, {kind} reward, seed {', '.join(map(str, seeds))}: {gate_sentence(found.gate, advice=False)}"
    if found.gate.status is not Status.PASSED:
        return Failed(name=GATES_FAILED, message=sentence)
    return Completed(name=CONTROL_PASSED, message=sentence)


def trained(run: Run, seed: int, facts: Facts, resume_from: str | None) -> Trained:
    """Train one seed to its last step, segment by segment, each from the previous checkpoint."""
    begin: Segment | None = None
    if resume_from is not None:
        begin = outcome(resume(run, seed, resume_from, return_state=True))
    done, cached = ([begin] if begin else []), 0
    for first, last in spans(begin["last"] if begin else 0, run.config.steps, run.config.training.segment_steps):
        outcome(verify_again(run, f"steps {first}-{last} of seed {seed}", return_state=True))
        one, was_cached = _segment(run, seed, first, last, facts, done[-1]["sha256"] if done else "")
        if one["last"] >= first:
            done.append(one)
            cached += was_cached
        if one["last"] < last:
            break  # training.early_stop ended the run in this segment or the previous one
    return Trained(seed, done, cached)


def spans(begun: int, steps: int, size: int) -> list[tuple[int, int]]:
    """Return first and last step of every segment after step `begun`; all but the last end at a multiple of `size`.

    So a run that resumes between two multiples has a shorter first segment, and the same segments afterwards.
    """
    ends = [*range(begun - begun % size + size, steps, size), steps] if begun < steps else []
    return list(zip([begun + 1, *(end + 1 for end in ends)], ends, strict=False))


def _segment(run: Run, seed: int, first: int, last: int, facts: Facts, previous: str) -> tuple[Segment, bool]:
    """Return a segment's result, and whether it existed already."""
    state = segment(run, seed, first, last, facts, previous, code_sha256("training"), return_state=True)
    return outcome(state), state.name == CACHED


def _evaluated(run: Run, story: Story, reference: str, sentence: str) -> State[Any]:
    """Evaluate exactly the trained checkpoints, and return the flow's final state."""
    finished = {one.seed: str(one.checkpoint["sha256"]) for one in story.trained}
    outcome(verify_again(run, "the evaluation", return_state=True))
    state = evaluation(run, finished, reference, return_state=True)
    found = read_report(GATE, state)
    if found.fault:
        outcome(state)
        raise RuntimeError(f"the evaluation: {found.fault}")
    story.evaluation = found.report or None
    if found.gate.status is not Status.PASSED:
        why = gate_sentence(found.gate, advice=False)
        return Failed(name=GATES_FAILED, message=f"{sentence}; {GATE} failed: {why}; the checkpoints stay")
    outcome(verify_again(run, "a checkpoint is kept permanently", return_state=True))
    story.best = outcome(keep_best(run, finished, return_state=True))
    return Completed(name=POLICY_IMPROVED, message=f"{sentence}; {GATE}: {gate_sentence(found.gate)}")
