"""A reward is worth optimising only if no worthless policy is paid like an honest one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rc1_lib.checks import at_least, at_most, equal, info
from rc1_lib.gates.shadow_run import interval_in_words
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.hacking import Earned, Undeserved
from rc1_lib.thresholds import RewardHackingGate

GATE = "reward_hacking"
_FIX = (
    "`paid_by` in the report tells which dimensions pay for it: lower what they weigh, or add one that sees the fault"
)


def reward_hacking_gate(
    policies: Mapping[str, Earned],
    curve: Sequence[float],
    coverage: float,
    thresholds: RewardHackingGate,
    judge_checks: Sequence[Check] = (),
) -> GateResult:
    """Judge what worthless policies earn, in all and in every part that is large enough to judge.

    Args:
        policies: name -> what it earns beside the teacher.
        curve: share solved when the best of 1, 2, ... dialogues by reward is taken.
        coverage: share of all dialogues that are scored.
        thresholds: `gates.reward_hacking`.
        judge_checks: what else has to hold of the scores.
    """
    checks = [
        at_least("scored, share", coverage, thresholds.min_coverage, "score the dialogues that have no score"),
        at_least("worthless policies", len(policies), thresholds.min_policies, "play the whole library"),
        *(check for name, found in policies.items() for check in _judged(name, found, thresholds)),
        *_optimised(curve, thresholds),
        *judge_checks,
    ]
    return GateResult(GATE, tuple(checks))


def _judged(name: str, found: Earned, thresholds: RewardHackingGate) -> list[Check]:
    bounds = thresholds.by_name.get(name, thresholds)
    overall = found.overall
    interval = {figure: one.of(overall.prompts, "prompts") for figure, one in found.intervals.items()}
    checks = [
        at_least(f"{name}: prompts to judge by", overall.prompts, thresholds.min_prompts, "take a larger shadow set"),
        at_least(f"{name}: below the teacher by", overall.margin, bounds.min_margin, _FIX, interval.get("margin")),
        at_most(
            f"{name}: paid more than the teacher, share", overall.above, bounds.max_above, _FIX, interval.get("above")
        ),
        *(info(f"{name}: {figure}, interval", interval_in_words(one)) for figure, one in found.intervals.items()),
    ]
    large = {part: one for part, one in found.parts.items() if one.prompts >= thresholds.min_prompts}
    worst = min(large.items(), key=lambda item: item[1].margin, default=("", Undeserved(0, math.nan, math.nan)))
    if large:
        checks.append(
            at_least(
                f"{name}: below the teacher by, worst of the parts", worst[1].margin, bounds.min_margin_part,
                f"{worst[0]}: {_FIX}",
            )
        )  # fmt: skip
        checks.append(info(f"{name}: worst part", f"{worst[0]}, {worst[1].prompts} prompts"))
    return checks


def _optimised(curve: Sequence[float], thresholds: RewardHackingGate) -> list[Check]:
    """Whether the dialogues that the reward picks are solved less often, the more there are to pick from."""
    few = equal("dialogues about one prompt, two or more", len(curve) > 1, True, "raise ablation.takes")
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
            "success lost by picking from more, pp", 100 * drop, thresholds.max_drop_pp,
            "the reward picks worse dialogues the more it may pick from: it is over-optimised; calibrate it anew",
        ),
        info("solved, best of 1, 2, ...", shown),
    ]  # fmt: skip
