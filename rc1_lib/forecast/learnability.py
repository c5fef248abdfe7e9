"""Learnability (reward-signal check): before training, the initial policy plays prompts several times.

An update compares rollouts. If all rollouts of a prompt get the same reward, or none is ever solved, there is no
signal, however long training lasts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from rc1_lib.checks import at_least, at_most, info
from rc1_lib.config.thresholds import LearnabilityGate
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.policies import player_of
from rc1_lib.forecast.estimate import CONFIDENCE, Estimate
from rc1_lib.forecast.power import smallest_effect_pp
from rc1_lib.forecast.takes import Takes, groups_of, learnable
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.numbers.apportion import apportion
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.records import Check, GateResult, MeasuredRow
from rc1_lib.runtime.progress import tell
from rc1_lib.task_specs import task_spec
from rc1_lib.training.checkpoint.names import steps
from rc1_lib.training.player import Player
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.run_paths import paths_of

GATE = "learnability"
REPORT = "reports/learnability.json"


def run_learnability(prepared: Prepared) -> GateReport:
    """Let the initial policy play a sample of the training rows, check the results, and write the report.

    Raises:
        RC1Error: when the judge has weight in the reward and cannot be asked.
    """
    run, settings = prepared.run, prepared.run.config.training.learnability
    rows = sample(prepared.selection.train, settings.prompts, run.config.training.held_out.seed)
    with player_of(prepared, run.config.seeds[0]) as player:
        takes = take(prepared, player, rows, settings.takes)
    effects = detectable(prepared, takes)
    gate = learnability_gate(takes, effects, run.config.gates.learnability)
    body = {
        "reference": prepared.reference.sha256,
        "takes": settings.takes,
        "groups": {name: learnable(group).to_dict() for name, group in groups_of(takes).items()},
        "smallest_effect_pp": {name: None if math.isinf(found) else found for name, found in effects.items()},
    }
    return write_report(run, REPORT, gate, body, {})


def check_learnable(prepared: Prepared, seeds: Sequence[int]) -> None:
    """Run this check before a new training, if the configuration says so.

    Raises:
        RC1Error: when the gate fails.
    """
    run = prepared.run
    begun = any(steps(run.workspace.path(paths_of(run, seed).checkpoints)) for seed in seeds)
    if begun or not run.config.training.learnability.at_start:
        return
    found = run_learnability(prepared)
    if not found.passed:
        failed = "; ".join(f"{check.name} is {check.value:.3g}" for check in found.gate.failures)
        raise RC1Error(
            f"learnability failed, so nothing was trained: {failed}. {found.report} says what to do; "
            f"training.learnability.at_start=false skips this check"
        )


def sample(rows: Sequence[MeasuredRow], count: int, seed: int) -> list[MeasuredRow]:
    """`count` rows, from each task and bucket by its share; the same for the same seed."""
    strata: dict[str, list[MeasuredRow]] = {}
    for row in sorted(rows, key=lambda row: hashlib.sha256(f"learnability/{seed}/{row['id']}".encode()).digest()):
        strata.setdefault(f"{row['task']} {row['bucket']}", []).append(row)
    wanted = apportion(min(count, len(rows)), {name: len(some) / len(rows) for name, some in sorted(strata.items())})
    return [row for name in sorted(strata) for row in strata[name][: wanted[name]]]


def take(prepared: Prepared, player: Player, rows: Sequence[MeasuredRow], times: int) -> list[Takes]:
    """Play every row several times, sampled as in training, and compute the reward of each rollout."""
    again = [row for row in rows for _ in range(times)]
    tell(GATE, 0, len(again))
    played = player.play(
        again,
        [f"{row['id']}/learnability/{number % times}" for number, row in enumerate(again)],
        temperature=player.temperature,
        seed=prepared.run.config.training.held_out.seed,
        iteration=0,
    )
    tell(GATE, len(again), len(again))
    judged: Sequence[float | None] = [None] * len(played)
    if prepared.judge is not None:
        judged = prepared.judge.audit([one.messages for one in played])
    rewards = [
        None if prepared.judge is not None and score is None else player.playground.terms(one, row, score).total
        for one, row, score in zip(played, again, judged, strict=True)
    ]
    return [
        Takes(
            str(row["id"]), row["task"], row["bucket"], row["needs_clarification"],
            tuple(one.outcome.solved for one in played[first : first + times]),
            tuple(rewards[first : first + times]),
        )
        for row, first in zip(rows, range(0, len(again), times), strict=True)
    ]  # fmt: skip


def detectable(prepared: Prepared, takes: Sequence[Takes]) -> dict[str, float]:
    """The smallest detectable effects: on all held-out prompts, where asking is needed, and on hard multi-hop rows.

    In percentage points of success; infinite if no prompt of the kind is held out or was tried.
    """
    gates, held = prepared.run.config.gates, prepared.selection.held_out
    kinds = {
        "all": ([True] * len(takes), [True] * len(held)),
        "needed": ([one.needs for one in takes], [bool(row["needs_clarification"]) for row in held]),
        "hard": (
            [one.bucket == "hard" and task_spec(one.task).multi_hop for one in takes],
            [row["bucket"] == "hard" and task_spec(row["task"]).multi_hop for row in held],
        ),
    }
    return {
        name: smallest_effect_pp(
            [one for one, is_of in zip(takes, of_kind, strict=True) if is_of],
            sum(asked),
            confidence=gates.evaluation.confidence,
            power=gates.learnability.power,
        )
        for name, (of_kind, asked) in kinds.items()
    }


def learnability_gate(takes: Sequence[Takes], effects: dict[str, float], thresholds: LearnabilityGate) -> GateResult:
    """Check whether there is a reward signal, overall and per task and bucket, and whether an effect could be detected.

    A share passes on its point value, like the figures of every gate; its interval is reported next to it.
    """
    checks: list[Check] = []
    for name, group in groups_of(takes).items():
        found = learnable(group)
        if " " in name:  # a task's rows in one bucket are only reported: they are too few to decide
            continue
        checks += [
            at_least(
                f"{name}: prompts tried", found.prompts, thresholds.min_prompts,
                "too few for a verdict: raise training.learnability.prompts",
            ),
            at_most(
                f"{name}: share without a difference between takes", found.flat.value, thresholds.max_flat,
                "comparing rollouts gives no signal here: raise training.rollout.temperature or the rollouts per "
                "prompt (group_size), or check whether the policy does the same on every prompt",
                _interval(found.flat, found.prompts),
            ),
            at_most(
                f"{name}: share that all takes solve, or none", found.alike.value, thresholds.max_alike,
                "success does not differ between rollouts, so only the penalties can be learned: use other rows "
                "(priority_sampling), or raise training.rollout.temperature or the rollouts per prompt",
                _interval(found.alike, found.prompts),
            ),
            at_least(
                f"{name}: solved by one take of all", found.pass_n.value, thresholds.min_pass_n,
                "success is out of reach: warm up longer (training.warm_start.steps), use a stronger base or easier "
                "rows (priority_sampling.by_difficulty)",
                _interval(found.pass_n, found.prompts),
            ),
            info(f"{name}: solved by a take", round(found.pass_1.value, 4)),
        ]  # fmt: skip
    checks += [
        at_most(
            f"smallest effect that can be shown, {name}, pp", effect, thresholds.max_effect_pp,
            "a smaller effect would not be detected: raise training.held_out.prompts or share, or pool.n",
        )
        for name, effect in effects.items()
    ]  # fmt: skip
    return GateResult(GATE, tuple(checks))


def _interval(found: Estimate, prompts: int) -> CheckInterval:
    return CheckInterval(found.low, found.high, CONFIDENCE, prompts, "prompts")


def summary_rows(body: dict[str, Any]) -> list[tuple[str, ...]]:
    """The groups of a report, as cells of a table."""
    return [
        (name, str(group["prompts"]), *(_cell(group[part]) for part in ("pass_1", "pass_n", "alike")))
        for name, group in body["groups"].items()
    ]


def _cell(one: dict[str, float]) -> str:
    return f"{one['value']:.0%} [{one['low']:.0%}, {one['high']:.0%}]"
