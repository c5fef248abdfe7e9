"""Drift: the same judge version grades the same dialogues as before, within a fixed bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from rc1_lib.checks import at_least, equal, info, within
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.records import GateResult

GATE = "judge_drift"
MIN_DIALOGUES = 30
"""Fewest dialogues to compare, and to record: half of the published set."""
MIN_COVERAGE = 0.9
"""Smallest share of the set with a score: less than elsewhere, since only dialogues scored both times are compared."""
_MAX_SHIFT = 0.08
"""By how much the medians of a criterion may move in the mean, up or down: as if eight of a hundred
dialogues had gone from 0 to 1."""
_MOVED = (
    "the judge grades differently than when the baseline was recorded, whatever its version is called: find out what "
    "changed at the provider. The weights were calibrated on the old grades, so calibrate again before you start a new "
    "baseline (docs/judge.md says how)"
)
_RENAMED = (
    "a version answers that was not used for calibration, even if its grades are the same: name the old one in "
    "judge.model if the provider still has it; else calibrate again, then start a new baseline (docs/judge.md says how)"
)


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The result of asking about the fixed set tonight.

    Attributes:
        dialogues: number of dialogues in the set.
        scored: number of them that were scored tonight with every sample.
        why_unscored: the most frequent reasons for missing scores, in words.
        samples: scores wanted for each.
        versions: the model versions that answered for the baseline, and those that answered tonight.
        lines: the usage log's lines of tonight's calls, columns of `LOG_SCHEMA`.
    """

    dialogues: int
    scored: int
    why_unscored: str
    samples: int
    versions: tuple[str, str]
    lines: pl.DataFrame


def judge_drift_gate(moved: Mapping[str, float], asked: AskedAgain, recorded: str) -> GateResult:
    """Check that the model version has not changed, and that medians have not moved in the mean.

    Args:
        moved: by how much the medians of each criterion moved, averaged over the dialogues scored both times.
        asked: the result of asking about the fixed set.
        recorded: when the baseline was recorded.
    """
    live = asked.lines.filter(pl.col("outcome") == AttemptOutcome.OK).select("dialogue", "sample").n_unique()
    replayed = asked.lines.filter(pl.col("outcome") == AttemptOutcome.HIT).height
    share = asked.scored / asked.dialogues if asked.dialogues else 0.0
    checks = [
        at_least(
            "scored again, share", share, MIN_COVERAGE,
            f"dialogues without a score tonight, by reason: {asked.why_unscored or 'the judge was not asked'}; they "
            f"cannot be compared",
        ),
        at_least(
            "dialogues compared", asked.scored, MIN_DIALOGUES,
            "too few to distinguish drift from noise: find out why the others have no score, or record a larger set",
        ),
        equal("replays from the cache", replayed, 0, "a stored score says nothing about tonight's judge: ask it again"),
        at_least(
            "samples that somebody really gave", live, asked.scored * asked.samples,
            "some scores are not tonight's answers: find out where they came from",
        ),
        equal("model versions", asked.versions[1], asked.versions[0], _RENAMED),
        *(within(f"{name}: medians moved by", by, -_MAX_SHIFT, _MAX_SHIFT, _MOVED) for name, by in moved.items()),
        info("baseline recorded", recorded),
    ]  # fmt: skip
    return GateResult(GATE, tuple(checks))
