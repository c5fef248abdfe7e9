"""Drift: asked again about the same dialogues, the same version grades as it did, but for its own noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from rc1_lib.checks import at_least, at_most, equal, info, within
from rc1_lib.config.thresholds import DriftGate
from rc1_lib.records import Check, GateResult
from rc1_lib.scoring.drift import Shift
from rc1_lib.scoring.usage import AttemptOutcome

GATE = "judge_drift"
_MOVED = (
    "the judge grades otherwise than when the baseline was recorded, whatever name its version has: find out what "
    "changed at the provider; weights were calibrated on the old grades, so calibrate again before a new baseline is "
    "recorded (rc1 judge-baseline --new)"
)
_RENAMED = (
    "another version answers than the one that was calibrated on, whether or not it grades alike: name the old one in "
    "judge.model if the provider still has it; else calibrate again, then record a new baseline (rc1 judge-baseline "
    "--new)"
)


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """What became of the fixed set tonight.

    Attributes:
        dialogues: in the set.
        scored: of them, scored tonight with every sample.
        why_unscored: the most frequent reasons, in words.
        samples: wanted of each.
        versions: the model versions that answered when the baseline was recorded, and those that did tonight.
        lines: the usage log's lines of this asking, columns of `LOG_SCHEMA`.
    """

    dialogues: int
    scored: int
    why_unscored: str
    samples: int
    versions: tuple[str, str]
    lines: pl.DataFrame


def judge_drift_gate(
    found: Sequence[Shift], asked: AskedAgain, thresholds: DriftGate, about: Mapping[str, str]
) -> GateResult:
    """Judge whether the version changed, or medians moved beyond the noise.

    Args:
        found: of each dimension, over the dialogues that are scored both times.
        asked: what became of the fixed set.
        thresholds: `gates.drift`; the bounds of the shifts follow from its rate of false alarms.
        about: what else to show of the baseline.
    """
    live = asked.lines.filter(pl.col("outcome") == AttemptOutcome.OK).select("dialogue", "sample").n_unique()
    replayed = asked.lines.filter(pl.col("outcome") == AttemptOutcome.HIT).height
    share = asked.scored / asked.dialogues if asked.dialogues else 0.0
    checks = [
        at_least(
            "scored again, share", share, thresholds.min_coverage,
            f"dialogues without a score tonight, by reason: {asked.why_unscored or 'none was asked about'}; an "
            f"unscored one is compared with nothing",
        ),
        at_least(
            "dialogues compared", asked.scored, thresholds.min_dialogues,
            "too few to tell noise from drift: see why the others are unscored, or record a larger set",
        ),
        equal("replays from the cache", replayed, 0, "a stored score says nothing of tonight's judge: ask it"),
        at_least(
            "samples that somebody really gave", live, asked.scored * asked.samples,
            "scores came from elsewhere than tonight's answers: find out from where",
        ),
        equal("model versions", asked.versions[1], asked.versions[0], _RENAMED),
        *(check for shift in found for check in _of(shift)),
        *(info(name, value) for name, value in about.items()),
    ]  # fmt: skip
    return GateResult(GATE, tuple(checks))


def _of(shift: Shift) -> tuple[Check, Check]:
    return (
        within(f"{shift.dimension}: medians moved by", shift.moved, -shift.moved_bound, shift.moved_bound, _MOVED),
        at_most(f"{shift.dimension}: medians of a dialogue apart, mean", shift.apart, shift.apart_bound, _MOVED),
    )
