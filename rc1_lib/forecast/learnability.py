"""Learnability (reward-signal check): before training, the initial policy plays prompts several times.

An update compares rollouts. If all rollouts of each prompt get the same reward, or no prompt is ever solved, there is
no signal, however long training lasts. Turns that are cut before they end give no signal either.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from rc1_lib.check_words import check_line
from rc1_lib.checks import at_least, at_most, info
from rc1_lib.config.run_config import LEAST_TRIED
from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.policies import player_of
from rc1_lib.forecast.estimate import Estimate, exactly, mean_of
from rc1_lib.forecast.price import Price, price_checks, price_of_a_question
from rc1_lib.forecast.takes import ROLLOUTS, Takes, groups_of, learnable, smallest_effect_pp
from rc1_lib.forecast.turns import LEVEL, Turns, room_to_set, turns_of, why_cut
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.numbers.sums import apportion
from rc1_lib.numbers.uncertainty import CONFIDENCE, CheckInterval
from rc1_lib.records import Check, GateResult, MeasuredRow
from rc1_lib.runtime.progress import report_progress
from rc1_lib.task_specs import task_spec
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import Prepared, has_begun
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.workspace.artifacts import FileState, file_state, read_json, sha256_json

GATE = "learnability"
PROMPTS = 300
"""Rows that `rc1 doctor --learnability` plays, drawn from each task and bucket by its share: enough to judge each."""
REPORT = "reports/learnability.json"
START_REPORT = "reports/learnability_at_start.json"

_FIRST = 8
"""Number of prompts that are played first; if nearly every turn is cut or malformed, the others are not played."""
_ROOM = 8
"""If turns are cut, the first prompts are played again with this multiple of `rollout_len`."""

MAX_FLAT = 0.9
"""Largest share of prompts whose rollouts all get the same reward: a comparison learns from the others only. At as many
a training ends (`training.collapse`)."""
MAX_ALIKE = 0.95
"""Largest share of prompts that all rollouts solve, or none does: one in twenty still shows how success differs."""
MIN_PASS_N = 0.05
"""Smallest share of prompts that at least one rollout solves; with fewer, success is hardly ever sampled."""
MAX_CUT = 0.2
"""Largest share of turns that a limit on tokens cuts: a turn that was cut is never right."""
MAX_MALFORMED = 0.5
"""Largest share of episodes with a malformed turn, as in `training.collapse`."""
_MAX_EFFECT_PP = 10.0
"""What the smallest effect that the held-out prompts can show may be, in points of success: twice what `ppo_eval`
requires."""

_FEW = "prompts tried"
_FLAT = "share without a difference between rollouts"
_ALIKE = "share that all rollouts solve, or none"
_EVERY = "share that every take solves"
_SOLVED = "solved by one take of all"
_CUT = "turns cut, share"
_LENGTH = f"tokens of {LEVEL:.0%} of the turns that end"
_MALFORMED = "episodes with a malformed turn, share"


@dataclass(frozen=True, slots=True)
class Trial:
    """What the initial policy did.

    Attributes:
        rows: the prompts that were played.
        played: their episodes, all of the first row, then all of the second, and so on.
        turns: the turns of these episodes.
        each: the same for each prompt.
        whole: whether all prompts were played; if not, the turns alone decide.
        longer: the turns of a few prompts with more room per turn; None if hardly any turn was cut.
        allowed: most tokens of a turn in training.
        thoughts: most tokens of its thoughts, if these have a separate budget.
        price: what a question is worth to it; None if a server samples, which cannot be kept from asking, and if only
            the judge's score is paid, which this does not ask for.
    """

    rows: Sequence[MeasuredRow]
    played: Sequence[Trajectory]
    turns: Turns
    each: Sequence[Turns]
    whole: bool
    longer: Turns | None
    allowed: int
    thoughts: int | None = None
    price: Price | None = None


def run_learnability(prepared: Prepared) -> GateReport:
    """Let the initial policy play a sample of the training rows, check the results, and write the report.

    Raises:
        RC1Error: when the judge has weight in the reward and cannot be asked.
    """
    run = prepared.run
    trial = try_out(prepared, PROMPTS, ROLLOUTS)
    takes = takes_of(prepared, trial, ask_judge=trial.whole)
    effects = detectable(prepared, takes)
    gate = learnability_gate(takes, trial, effects)
    body = _body(prepared, takes, trial) | {
        "smallest_effect_pp": {name: None if math.isinf(found) else found for name, found in effects.items()},
    }
    return write_report(run, REPORT, gate, body, {})


def check_learnable(prepared: Prepared, seeds: Sequence[int]) -> str:
    """Check before the first step of a training whether anything can be learned.

    `training.learnability.at_start` prompts are played and judged together. Nothing is played if the training has a
    checkpoint or a report of a passed check, or learns from given dialogues.

    Returns:
        The result in one sentence, or that the configuration turns the check off; "" if neither applies.

    Raises:
        RC1Error: when the gate fails; names each value, its threshold and key, and what to do.
    """
    run = prepared.run
    prompts = run.config.training.learnability.at_start
    if not run.config.training.plays or any(has_begun(prepared, seed) for seed in seeds):
        return ""
    if not prompts:
        return "learnability is not tried: training.learnability.at_start is 0"
    if _has_passed(prepared):
        return f"learnability passed before, by {START_REPORT}"
    began = time.monotonic()
    trial = try_out(prepared, prompts, ROLLOUTS)
    takes = takes_of(prepared, trial, ask_judge=False)
    if trial.whole and prepared.judge is not None and learnable(takes).flat.value > MAX_FLAT:
        takes = takes_of(prepared, trial, ask_judge=True)  # the judge may tell apart what verification scores the same
    gate = start_gate(takes, trial)
    body = _body(prepared, takes, trial) | {"facts": _facts_sha256(prepared)}
    found = write_report(run, START_REPORT, gate, body, {}, recorded_as=GATE)
    seconds = time.monotonic() - began
    if not found.passed:
        failed = "; ".join(_sentences(gate.failures))
        raise RC1Error(
            f"learnability failed after {seconds:.0f} s, so nothing was trained: {failed}. {START_REPORT} has all "
            f"values; training.learnability.at_start=0 skips this check"
        )
    group = learnable(takes)
    return (
        f"learnability passed after {seconds:.0f} s: of {group.prompts} prompts with {ROLLOUTS} rollouts each "
        f"{group.pass_n.value:.0%} are solved by one of them, {group.flat.value:.0%} show no difference"
    )


def _has_passed(prepared: Prepared) -> bool:
    """Return whether this training passed before, for example if it was killed before its first checkpoint.

    A report that was altered since it was written does not count; the prompts are played again.
    """
    place = prepared.run.workspace
    if file_state(place, START_REPORT, kind=GATE) is not FileState.FRESH:
        return False
    report: dict[str, Any] = read_json(place.path(START_REPORT))
    own = {"pass": True, "config_sha256": prepared.run.config_sha256, "facts": _facts_sha256(prepared)}
    return report.items() >= own.items()


def _facts_sha256(prepared: Prepared) -> str:
    return sha256_json(prepared.facts(prepared.run.config.seeds[0]))


def _sentences(failures: Sequence[Check]) -> list[str]:
    """Describe each failed check with its threshold and remedy; equal rewards are omitted if their cause is named.

    The causes are that every rollout solves a prompt, or none does.
    """
    labelled = {check.name.removeprefix("all: "): check for check in failures}
    if labelled.keys() & {_EVERY, _SOLVED}:
        labelled = {label: check for label, check in labelled.items() if label not in (_ALIKE, _FLAT)}
    return [
        f"{check_line(check)}{' (rollout_len)' if label == _LENGTH else ''}: {check.advice}"
        for label, check in labelled.items()
    ]


def _body(prepared: Prepared, takes: Sequence[Takes], trial: Trial) -> dict[str, Any]:
    return {
        "reference": prepared.reference.sha256,
        "takes": len(trial.played) // len(trial.rows),
        "groups": {name: learnable(group).to_dict() for name, group in groups_of(takes).items()},
        "turns": trial.turns.to_dict(),
        "turns_with_more_room": None if trial.longer is None else trial.longer.to_dict(),
        "price": None if trial.price is None else trial.price.to_dict(),
    }


def sample(rows: Sequence[MeasuredRow], count: int, seed: int) -> list[MeasuredRow]:
    """Sample `count` rows, stratified by task and bucket; the same seed gives the same rows."""
    strata: dict[str, list[MeasuredRow]] = {}
    for row in sorted(rows, key=lambda row: hashlib.sha256(f"learnability/{seed}/{row['id']}".encode()).digest()):
        strata.setdefault(f"{row['task']} {row['bucket']}", []).append(row)
    wanted = apportion(min(count, len(rows)), {name: len(some) / len(rows) for name, some in sorted(strata.items())})
    return [row for name in sorted(strata) for row in strata[name][: wanted[name]]]


def try_out(prepared: Prepared, prompts: int, times: int) -> Trial:
    """Let the initial policy play `prompts` training rows, each `times` times, with training's sampling settings."""
    config = prepared.run.config
    thoughts = config.training.rollout.thought_tokens
    apart, own = thoughts is not None, config.training.rollout.sampler == "own"
    rows = sample(prepared.selection.train, prompts, HELD_OUT_SEED)
    first = rows[:: max(1, len(rows) // _FIRST)][:_FIRST]
    rest = [row for row in rows if row not in first]
    with player_of(prepared, config.seeds[0]) as player:
        played = _play(prepared, player, first, times)
        whole = not _is_hopeless(_by_prompt(prepared, played, times))
        if whole and rest:
            played += _play(prepared, player, rest, times)
        priced = whole and own and config.training.reward.success > 0
        price = price_of_a_question(prepared, player, rows) if priced else None
    turns, each = turns_of(played, prepared.form, thoughts_apart=apart), _by_prompt(prepared, played, times)
    longer = None
    if turns.cut > (1 - LEVEL) * len(turns.was_cut):
        roomy = _with_room(prepared)
        with player_of(roomy, config.seeds[0]) as player:
            longer = turns_of(_play(roomy, player, first, 1), prepared.form, thoughts_apart=apart)
    kept = [*first, *rest] if whole else first
    return Trial(kept, played, turns, each, whole, longer, config.rollout_len, thoughts, price)


def _by_prompt(prepared: Prepared, played: Sequence[Trajectory], times: int) -> list[Turns]:
    apart = prepared.run.config.training.rollout.thought_tokens is not None
    return [
        turns_of(played[at : at + times], prepared.form, thoughts_apart=apart) for at in range(0, len(played), times)
    ]


def _is_hopeless(each: Sequence[Turns]) -> bool:
    """Return whether the low end of an interval exceeds its threshold, so that more prompts would hardly help."""
    cut, malformed = _shares(each)
    return cut.low > MAX_CUT or malformed.low > MAX_MALFORMED


def _shares(each: Sequence[Turns]) -> tuple[Estimate, Estimate]:
    """Return the shares of cut turns and of episodes with a malformed one, over prompts: a fault may be a prompt's."""
    cut, malformed = [fmean(one.was_cut) for one in each], [fmean(one.malformed) for one in each]
    if len(each) == 1:
        return exactly(cut[0]), exactly(malformed[0])
    return mean_of(cut), mean_of(malformed)


def _with_room(prepared: Prepared) -> Prepared:
    """Return the inputs with more tokens per turn and dialogue, and without a server, whose context is too short."""
    run, training = prepared.run, prepared.run.config.training
    thoughts = training.rollout.thought_tokens
    parts = {
        "limits": training.limits.model_copy(update={"tokens": _ROOM * training.limits.tokens}),
        "rollout": training.rollout.model_copy(
            update={"sampler": "own", "thought_tokens": thoughts and _ROOM * thoughts}
        ),
    }
    roomy = {"rollout_len": _ROOM * run.config.rollout_len, "training": training.model_copy(update=parts)}
    return replace(prepared, run=replace(run, config=run.config.model_copy(update=roomy)))


def _play(prepared: Prepared, player: PolicyEngine, rows: Sequence[MeasuredRow], times: int) -> list[Trajectory]:
    repeated = [row for row in rows for _ in range(times)]
    report_progress(GATE, 0, len(repeated))
    played = player.play(
        repeated,
        [f"{row['id']}/learnability/{number % times}" for number, row in enumerate(repeated)],
        temperature=player.temperature,
        seed=HELD_OUT_SEED,
        iteration=0,
    )
    report_progress(GATE, len(repeated), len(repeated))
    return played


def takes_of(prepared: Prepared, trial: Trial, *, ask_judge: bool) -> list[Takes]:
    """Return the rollouts of every prompt with their rewards; if no judge is asked, all scores count as equal.

    Raises:
        RC1Error: when the judge has weight in the reward and cannot be asked.
    """
    times = len(trial.played) // len(trial.rows)
    playground = Playground(prepared.run.config, prepared.form)
    judged: Sequence[float | None] = [0.0] * len(trial.played)
    if prepared.judge is not None and ask_judge:
        judged = prepared.judge.audit([episode.messages for episode in trial.played])
    rewards = [
        None if score is None else playground.terms(episode, trial.rows[number // times], score).total
        for number, (episode, score) in enumerate(zip(trial.played, judged, strict=True))
    ]
    return [
        Takes(
            str(row["id"]), row["task"], row["bucket"], row["needs_clarification"],
            tuple(episode.outcome.solved for episode in trial.played[first : first + times]),
            tuple(rewards[first : first + times]),
        )
        for row, first in zip(trial.rows, range(0, len(trial.played), times), strict=True)
    ]  # fmt: skip


def detectable(prepared: Prepared, takes: Sequence[Takes]) -> dict[str, float]:
    """Return the smallest detectable effects: on all held-out prompts, where asking is needed, and on hard multi-hop.

    They are in percentage points of success, and infinite if no prompt of the kind is held out or was played.
    """
    held = prepared.selection.held_out
    kinds = {
        "all": ([True] * len(takes), [True] * len(held)),
        "needed": ([prompt.needs for prompt in takes], [bool(row["needs_clarification"]) for row in held]),
        "hard": (
            [prompt.bucket == "hard" and task_spec(prompt.task).multi_hop for prompt in takes],
            [row["bucket"] == "hard" and task_spec(row["task"]).multi_hop for row in held],
        ),
    }
    return {
        name: smallest_effect_pp(
            [prompt for prompt, belongs in zip(takes, played, strict=True) if belongs],
            sum(held_out),
            confidence=CONFIDENCE,
        )
        for name, (played, held_out) in kinds.items()
    }


def learnability_gate(takes: Sequence[Takes], trial: Trial, effects: dict[str, float]) -> GateResult:
    """Check whether there is a reward signal, overall and per task and bucket, and whether an effect could be detected.

    The point value of a share decides, as in every gate; its interval is reported next to it.
    """
    if not trial.whole:
        return GateResult(GATE, tuple(_turn_checks(trial)))
    checks: list[Check] = []
    for name, group in groups_of(takes).items():
        if " " not in name:  # a task's rows in one bucket are too few to decide, so they are only reported
            checks += _group_checks(name, group)
    checks += [*_turn_checks(trial), *_price_checks(trial)]
    checks += [
        at_most(
            f"smallest effect that can be shown, {name}, pp", effect, _MAX_EFFECT_PP,
            "a smaller effect would not be detected: raise training.held_out.prompts or share, or pool.n",
        )
        for name, effect in effects.items()
    ]  # fmt: skip
    return GateResult(GATE, tuple(checks))


def start_gate(takes: Sequence[Takes], trial: Trial) -> GateResult:
    """Check on all prompts together what would make a training useless; groups would be too small."""
    of_takes = _group_checks("all", takes) if trial.whole else []
    return GateResult(GATE, (*of_takes, *_turn_checks(trial), *_price_checks(trial)))


def _group_checks(name: str, group: Sequence[Takes]) -> list[Check]:
    found = learnable(group)
    return [
        at_least(
            f"{name}: {_FEW}", found.prompts, LEAST_TRIED,
            "too few for a verdict: give the pool more rows that fit (before a training: raise "
            "training.learnability.at_start)",
        ),
        at_most(
            f"{name}: {_FLAT}", found.flat.value, MAX_FLAT,
            "comparing rollouts gives no signal here: raise training.rollout.temperature or the rollouts per "
            "prompt (group_size), or check whether the policy does the same on every prompt",
            _interval(found.flat, found.prompts),
        ),
        at_most(
            f"{name}: {_ALIKE}", found.alike.value, MAX_ALIKE,
            "success does not differ between rollouts, so only the penalties can be learned: use other rows "
            "(priority_sampling), or raise training.rollout.temperature or the rollouts per prompt",
            _interval(found.alike, found.prompts),
        ),
        at_most(
            f"{name}: {_EVERY}", found.every.value, MAX_ALIKE,
            "nothing is left to learn: use harder rows (priority_sampling.by_difficulty) or other questions",
            _interval(found.every, found.prompts),
        ),
        at_least(
            f"{name}: {_SOLVED}", found.pass_n.value, MIN_PASS_N,
            "success is out of reach: warm up longer (training.warm_start.steps), use a stronger base or easier "
            "rows (priority_sampling.by_difficulty)",
            _interval(found.pass_n, found.prompts),
        ),
        info(f"{name}: solved by a take", round(found.pass_1.value, 4)),
    ]  # fmt: skip


_NO_PRICE = "not looked at: the trial broke off, a server samples, or only the judge's score is paid"


def _price_checks(trial: Trial) -> list[Check]:
    if trial.price is None:
        return [info("what a question is worth", _NO_PRICE)]
    return price_checks(trial.price)


def _turn_checks(trial: Trial) -> list[Check]:
    turns, longer = trial.turns, trial.longer or trial.turns
    cut, malformed = _shares(trial.each)
    checks = [
        at_most(
            _CUT, cut.value, MAX_CUT,
            why_cut(turns, longer, trial.allowed, trial.thoughts),
            _interval(cut, len(trial.each)),
        ),
        at_most(
            _MALFORMED, malformed.value, MAX_MALFORMED,
            "warm up longer (training.warm_start.steps), describe the tools (training.describe_tools), or use a base "
            "that follows the format",
            _interval(malformed, len(trial.each)),
        ),
    ]  # fmt: skip
    if longer.tokens:  # the length of turns is known only if some end by themselves
        checks.append(at_most(_LENGTH, longer.length, trial.allowed, room_to_set(longer)))
    return checks


def _interval(found: Estimate, prompts: int) -> CheckInterval:
    return CheckInterval(found.low, found.high, CONFIDENCE, prompts, "prompts")
