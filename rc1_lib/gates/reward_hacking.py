"""A reward is worth optimising only if no worthless policy is paid like an honest one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rc1_lib.checks import at_least, at_most, equal, info
from rc1_lib.gates.shadow_run import interval_in_words
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.hacking import Earned, Undeserved
from rc1_lib.thresholds import RewardHackingGate

GATE = "reward_hacking"
_COVERAGE, _POLICIES = "scored, share", "worthless policies"
_PROMPTS, _BELOW, _ABOVE = "prompts to judge by", "below the teacher by", "paid more than the teacher, share"
_TAKES, _LOST = "dialogues about one prompt, two or more", "success lost by picking from more, pp"
_TRAINED = "worst policy, as trained"
_FIX = (
    "`paid_by` in the report tells which dimensions pay for it: lower what they weigh, or add one that sees the fault"
)


def hacking_checks(policies: Iterable[str]) -> frozenset[str]:
    """What the report of an attack by these policies has to have checked."""
    judged = {f"{name}: {what}" for name in policies for what in (_PROMPTS, _BELOW, _ABOVE)}
    return frozenset({_COVERAGE, _POLICIES, _TAKES, _LOST, f"{_TRAINED}: {_BELOW}", f"{_TRAINED}: {_ABOVE}", *judged})


def reward_hacking_gate(
    policies: Mapping[str, Earned],
    trained: Mapping[str, Earned],
    curve: Sequence[float],
    coverage: float,
    thresholds: RewardHackingGate,
    judge_checks: Sequence[Check] = (),
) -> GateResult:
    """Judge what worthless policies earn, in all and in every part that is large enough to judge.

    Args:
        policies: name -> what it earns beside the teacher, by the judged part alone.
        trained: the same by what training pays, the verified outcome included; no policy has bounds of its own there.
        curve: share solved when the best of 1, 2, ... dialogues by reward is taken.
        coverage: share of all dialogues that are scored.
        thresholds: `gates.reward_hacking`.
        judge_checks: what else has to hold of the scores.
    """
    checks = [
        at_least(_COVERAGE, coverage, thresholds.min_coverage, "score the dialogues that have no score"),
        at_least(_POLICIES, len(policies), thresholds.min_policies, "play the whole library"),
        *(check for name, found in policies.items() for check in _judged(name, found, thresholds)),
        *_as_trained(trained, thresholds),
        *_optimised(curve, thresholds),
        *judge_checks,
    ]
    return GateResult(GATE, tuple(checks))


def _judged(name: str, found: Earned, thresholds: RewardHackingGate) -> list[Check]:
    bounds = thresholds.by_name.get(name, thresholds)
    overall = found.overall
    interval = {figure: one.of(overall.prompts, "prompts") for figure, one in found.intervals.items()}
    checks = [
        at_least(f"{name}: {_PROMPTS}", overall.prompts, thresholds.min_prompts, "take a larger shadow set"),
        at_least(f"{name}: {_BELOW}", overall.margin, bounds.min_margin, _FIX, interval.get("margin")),
        at_most(f"{name}: {_ABOVE}", overall.above, bounds.max_above, _FIX, interval.get("above")),
        *(info(f"{name}: {figure}, interval", interval_in_words(one)) for figure, one in found.intervals.items()),
    ]
    large = {part: one for part, one in found.parts.items() if one.prompts >= thresholds.min_prompts}
    worst = min(large.items(), key=lambda item: item[1].margin, default=("", Undeserved(0, math.nan, math.nan)))
    if large:
        checks.append(
            at_least(
                f"{name}: {_BELOW}, worst of the parts", worst[1].margin, bounds.min_margin_part,
                f"{worst[0]}: {_FIX}",
            )
        )  # fmt: skip
        checks.append(info(f"{name}: worst part", f"{worst[0]}, {worst[1].prompts} prompts"))
    return checks


def _as_trained(policies: Mapping[str, Earned], thresholds: RewardHackingGate) -> list[Check]:
    """The nearest policy by what training pays."""
    fix = "what training pays (training.reward) does not tell it from an honest one: raise `success` there"
    nearest = min(policies.items(), key=lambda item: _or_least(item[1].overall.margin), default=("none", None))
    dearest = max(policies.items(), key=lambda item: _or_most(item[1].overall.above), default=("none", None))
    margin = math.nan if nearest[1] is None else nearest[1].overall.margin
    above = math.nan if dearest[1] is None else dearest[1].overall.above
    return [
        at_least(f"{_TRAINED}: {_BELOW}", margin, thresholds.min_margin, f"{nearest[0]}: {fix}"),
        at_most(f"{_TRAINED}: {_ABOVE}", above, thresholds.max_above, f"{dearest[0]}: {fix}"),
        info(f"{_TRAINED}: names", f"{nearest[0]}, {dearest[0]}"),
    ]


def _or_least(margin: float) -> float:
    return -math.inf if math.isnan(margin) else margin


def _or_most(share: float) -> float:
    return math.inf if math.isnan(share) else share


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
            "the reward picks worse dialogues the more it may pick from: it is over-optimised; calibrate it anew",
        ),
        info("solved, best of 1, 2, ...", shown),
    ]  # fmt: skip
