"""The judge's gates: the probe, and the places of those that need live scores.

This version scores with the local rubric only. Where a gate needs evidence that this version cannot gather, it ends as
an error: it is never passed, and only a profile that waives it by name gets past it, visibly.
"""

from __future__ import annotations

from collections.abc import Sequence

from rc1_lib.gates.checks import above, at_least, equal, info
from rc1_lib.records import GateResult
from rc1_lib.scoring import rubric
from rc1_lib.thresholds import ProbeGate


def probe_gate(provider: str, dialogues: Sequence[Sequence[rubric.Message]], thresholds: ProbeGate) -> GateResult:
    """Score `thresholds.n` dialogues with the provider and judge that it really answered.

    Args:
        provider: the judge's name.
        dialogues: chat messages; the first `n` are scored.
        thresholds: how many, and whether somebody has to have been billed.
    """
    known = equal(
        "provider", provider, rubric.NAME,
        f"this version can only ask the local rubric; '{provider}' needs a live provider, and no mock stands in for it",
    )  # fmt: skip
    if not known.passed:
        return GateResult("judge_probe", (known,))
    scored = [rubric.score(dialogue) for dialogue in dialogues[: thresholds.n]]
    outside = sum(not 0.0 <= value <= 1.0 for one in scored for value in one.scores.values())
    checks = [
        known,
        equal("dialogues scored", len(scored), thresholds.n, "the pool holds fewer dialogues than the probe asks for"),
        equal("scores outside [0, 1]", outside, 0, "mend the judge"),
        above("shortest latency, ms", min((one.latency_ms for one in scored), default=0.0), 0.0, "a judge takes time"),
        info("billed calls", sum(one.billable for one in scored)),
    ]
    if thresholds.require_billed:
        billed = sum(one.billable for one in scored)
        checks.append(
            at_least("billed calls, required", billed, 1, "use a live provider: the local rubric bills nobody")
        )
    return GateResult("judge_probe", tuple(checks))


def unavailable(name: str, what: str) -> GateResult:
    """A gate whose evidence this version cannot gather."""
    return GateResult(name, error=f"cannot be evaluated: {what}")
