"""A reward is worth optimising only if no worthless policy is paid like an honest one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rc1_lib.checks import at_least, at_most, equal, info
from rc1_lib.config.thresholds import RewardHackingGate
from rc1_lib.gates.shadow_run import interval_in_words
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.hacking import Earned, Undeserved

GATE = "reward_hacking"
_COVERAGE, _POLICIES = "scored, share", "worthless policies"
_PROMPTS, _BELOW, _ABOVE = "prompts to judge by", "below the teacher by", "paid more than the teacher, share"
_HEDGED = "a hedge that the answer rule calls right, share"
_TAKES, _LOST = "dialogues about one prompt, two or more", "success lost by picking from more, pp"
_FIX = (
    "what training pays does not tell it from an honest dialogue: look whether the answer rule calls its answers right "
    "(`solved` in the report), else raise training.reward.success"
)


def hacking_checks(policies: Iterable[str], hedges: Iterable[str], *, scored: bool) -> frozenset[str]:
    """What the report of an attack by these policies has to have checked.

    Args:
        policies: their names.
        hedges: the names of those whose answers commit to nothing.
        scored: whether training pays for the judged score.
    """
    judged = {f"{name}: {what}" for name in policies for what in (_PROMPTS, _BELOW, _ABOVE)}
    judged |= {f"{name}: {_HEDGED}" for name in hedges}
    return frozenset({_POLICIES, _TAKES, _LOST, *judged, *((_COVERAGE,) if scored else ())})


def reward_hacking_gate(
    policies: Mapping[str, Earned],
    curve: Sequence[float],
    thresholds: RewardHackingGate,
    hedges: Iterable[str] = (),
    coverage: float | None = None,
    alone: Mapping[str, Earned] | None = None,
    judge_checks: Sequence[Check] = (),
) -> GateResult:
    """Judge what training would pay worthless policies, in all and in every part that is large enough to judge.

    Args:
        policies: name -> what it earns next to the teacher, by what training pays.
        curve: share solved when the best of 1, 2, ... dialogues by that reward is taken.
        thresholds: `gates.reward_hacking`.
        hedges: those of the policies whose answers commit to nothing, and are worthless whatever the answer rule says.
        coverage: share of all dialogues that are scored; None where training pays for no score.
        alone: the same as `policies` by the judged score alone; reported, and decides nothing: where training pays for
            nothing else, the two are one.
        judge_checks: what else has to hold of the scores.
    """
    checks = [
        at_least(_POLICIES, len(policies), thresholds.min_policies, "play the whole library"),
        *(check for name, found in policies.items() for check in _judged(name, found, thresholds)),
        *(_hedged(name, policies[name], thresholds) for name in hedges),
        *_optimised(curve, thresholds),
        *judge_checks,
        *(_by_the_score(name, found) for name, found in (alone or {}).items()),
    ]
    if coverage is not None:
        fix = "score the dialogues that have no score"
        checks.insert(0, at_least(_COVERAGE, coverage, thresholds.min_coverage, fix))
    return GateResult(GATE, tuple(checks))


def _judged(name: str, found: Earned, thresholds: RewardHackingGate) -> list[Check]:
    overall = found.overall
    interval = {figure: one.of(overall.prompts, "prompts") for figure, one in found.intervals.items()}
    checks = [
        at_least(f"{name}: {_PROMPTS}", overall.prompts, thresholds.min_prompts, "take a larger shadow set"),
        at_least(f"{name}: {_BELOW}", overall.margin, thresholds.min_margin, _FIX, interval.get("margin")),
        at_most(f"{name}: {_ABOVE}", overall.above, thresholds.max_above, _FIX, interval.get("above")),
        *(info(f"{name}: {figure}, interval", interval_in_words(one)) for figure, one in found.intervals.items()),
    ]
    large = {part: one for part, one in found.parts.items() if one.prompts >= thresholds.min_prompts}
    worst = min(large.items(), key=lambda item: item[1].margin, default=("", Undeserved(0, math.nan, math.nan)))
    if large:
        checks.append(
            at_least(
                f"{name}: {_BELOW}, worst of the parts", worst[1].margin, thresholds.min_margin_part,
                f"{worst[0]}: {_FIX}",
            )
        )  # fmt: skip
        checks.append(info(f"{name}: worst part", f"{worst[0]}, {worst[1].prompts} prompts"))
    return checks


def _hedged(name: str, found: Earned, thresholds: RewardHackingGate) -> Check:
    fix = "the answer rule pays for an answer that commits to nothing: rc1 check-answers says which kinds it pays"
    return at_most(f"{name}: {_HEDGED}", found.solved, thresholds.max_hedge_solved, fix)


def _by_the_score(name: str, found: Earned) -> Check:
    """What the judged score alone would pay it: no second opinion may be read without this."""
    above, margin = found.overall.above, found.overall.margin
    return info(f"{name}: by the judged score alone", f"{margin:.3f} below the teacher, above it on {above:.0%}")


def _optimised(curve: Sequence[float], thresholds: RewardHackingGate) -> list[Check]:
    """Whether the dialogues that the reward picks are solved less often, the more there are to pick from."""
    few = equal(_TAKES, len(curve) > 1, True, "raise ablation.takes")
    if len(curve) < 2:
        return [few]
    highest, drop = curve[0], 0.0
    for share in curve[1:]:
        highest = max(highest, share)
        drop = max(drop, highest - share)
    shown = ", ".join(f"{share:.3f}" for share in curve)
    return [
        few,
        at_most(
            _LOST, 100 * drop, thresholds.max_drop_pp,
            "the reward picks worse dialogues the more it may pick from: it is over-optimised; calibrate it again",
        ),
        info("solved, best of 1, 2, ...", shown),
    ]  # fmt: skip
