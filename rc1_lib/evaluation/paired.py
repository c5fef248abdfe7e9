"""Compare two policies on the same prompts: every metric of both and its change, with intervals.

Differences are paired: a resample draws source questions with replacement and uses both policies' episodes about them,
so that easy and hard prompts cancel out. Prompts about one source question stay together across training seeds.
Percentile intervals (`rc1_lib.reward.intervals`) show how the metrics would vary with other prompts; only more training
seeds can show how they vary with the seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.evaluation.episodes import OF_PROMPT, EvaluationError
from rc1_lib.evaluation.metrics import FIGURES, GAP, IS_SHARE, ratios
from rc1_lib.reward.intervals import Interval, bootstrap

Floats = NDArray[np.float64]
OVERCLAR_DROP = "overclar_drop_pct"
CHANGES = (*FIGURES, OVERCLAR_DROP)
_DIGITS = 12
"""Changes are rounded to this many digits, so that 0.15 - 0.10 is exactly 5 points."""
_KEY = ("seed", "row_id")


@dataclass(frozen=True, slots=True)
class Contrast:
    """The metrics of two policies, before and after training, on the same prompts.

    Attributes:
        prompts: number of pairs of episodes.
        before: metric -> value with interval for the first policy; shares are in [0, 1].
        after: the same for the second policy.
        change: metric -> `after` minus `before` with its paired interval: in percentage points for shares, in the
            metric's own unit for means. Also `overclar_drop_pct`, the relative drop of the over-clarification rate in
            per cent, undefined if the rate was 0.
    """

    prompts: int
    before: Mapping[str, Interval]
    after: Mapping[str, Interval]
    change: Mapping[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, with None for undefined ones."""
        sides = {"before": self.before, "after": self.after, "change": self.change}
        return {
            "prompts": self.prompts,
            **{side: {name: value.to_dict() for name, value in found.items()} for side, found in sides.items()},
        }


def paired(frame: pl.DataFrame, before: str, after: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the episodes of both policies in one mode, aligned so that each row has the same prompt and seed.

    Raises:
        EvaluationError: when a policy has no episode, or only one of them answered a prompt.
    """
    sides = [frame.filter(pl.col("policy") == name).sort(_KEY) for name in (before, after)]
    for name, episodes in zip((before, after), sides, strict=True):
        if not episodes.height:
            raise EvaluationError(f"policy '{name}' answered no prompts; let both policies answer the same ones")
    for first, second, name in ((0, 1, after), (1, 0, before)):
        unpaired = sides[first].join(sides[second], on=_KEY, how="anti")
        if unpaired.height:
            raise EvaluationError(
                f"policy '{name}' did not answer {unpaired.height} prompts that the other one answered, for example "
                f"'{unpaired['row_id'][0]}' of seed {unpaired['seed'][0]}; let both answer the same ones"
            )
    assert sides[0].select(OF_PROMPT).equals(sides[1].select(OF_PROMPT)), "a checked frame agrees about its prompts"
    return sides[0], sides[1]


def contrast(frame: pl.DataFrame, *, before: str, after: str, confidence: float, resamples: int, seed: int) -> Contrast:
    """Compare two policies on the episodes of one mode.

    Args:
        frame: checked episodes of one mode (`rc1_lib.evaluation.episodes`); several training seeds are pooled.
        before: name of the initial policy.
        after: name of the policy under evaluation.
        confidence: confidence level of the intervals, in (0, 1).
        resamples: number of bootstrap samples of source questions; of a single question there are no intervals.

    Raises:
        EvaluationError: when `paired` raises it.
    """
    first, second = paired(frame, before, after)
    intervals = bootstrap(
        _Statistics(first, second),
        groups=first["source_id"].to_numpy(),
        weights=np.ones(first.height),
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    if first["source_id"].n_unique() < 2:  # every resample of one question is that question
        intervals = {name: replace(one, low=math.nan, high=math.nan, resamples=0) for name, one in intervals.items()}
    return Contrast(
        prompts=first.height,
        before={name: intervals[f"before.{name}"] for name in FIGURES},
        after={name: intervals[f"after.{name}"] for name in FIGURES},
        change={name: intervals[f"change.{name}"] for name in CHANGES},
    )


class _Statistics:
    """Computes every metric of both policies and every change from the weights of the pairs."""

    _names = tuple(f"{side}.{name}" for side in ("before", "after") for name in FIGURES) + tuple(
        f"change.{name}" for name in CHANGES
    )
    _scale = np.array([100.0 if IS_SHARE[name] else 1.0 for name in FIGURES])
    _recall, _overclar = (FIGURES.index(name) for name in ("ask_recall", "overclar_rate"))

    def __init__(self, before: pl.DataFrame, after: pl.DataFrame) -> None:
        # One product with the weights gives all sums: the columns are numerators, then denominators, of each policy.
        self._terms = np.hstack([_terms(before), _terms(after)])

    def __call__(self, weights: Floats) -> dict[str, float]:
        sums = (weights @ self._terms).reshape(2, 2, -1)
        with np.errstate(invalid="ignore"):
            shares = sums[:, 0] / sums[:, 1]
        gap = shares[:, self._recall] - shares[:, self._overclar]
        before, after = np.column_stack([shares, gap])
        change = np.round(self._scale * (after - before), _DIGITS)
        asked = float(before[self._overclar])
        drop = 100.0 * (asked - float(after[self._overclar])) / asked if asked > 0 else math.nan
        values = [*before.tolist(), *after.tolist(), *change.tolist(), round(drop, _DIGITS)]
        return dict(zip(self._names, values, strict=True))


def _terms(frame: pl.DataFrame) -> Floats:
    """Return the numerators of all ratios, then their denominators, shape (episodes, 2 * ratios)."""
    found = ratios()
    assert (*found, GAP) == FIGURES
    over = [ratio.over.cast(pl.Float64).alias(f"over.{name}") for name, ratio in found.items()]
    of = [ratio.of.cast(pl.Float64).alias(f"of.{name}") for name, ratio in found.items()]
    return (
        frame.with_columns(*over, *of)
        .select([f"{part}.{name}" for part in ("over", "of") for name in found])
        .to_numpy()
    )
