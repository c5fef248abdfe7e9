"""Two policies on the same prompts: every figure for both, and its change, with intervals.

Differences are paired: a resample draws source questions with replacement and uses both policies' episodes about them,
so that hard and easy prompts cancel. Prompts about one source question stay together across training seeds. Intervals
are percentile intervals (`rc1_lib.reward.intervals`). They show how the figures would vary with other prompts; only
more training seeds can show how they vary with the seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
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
    """The figures of two policies, before and after training, on the same prompts.

    Attributes:
        prompts: pairs of episodes compared.
        before: figure -> its value with interval for the first policy; shares are in [0, 1].
        after: the same for the second.
        change: figure -> `after` minus `before` with its paired interval: in percentage points for shares, in the
            figure's own unit for means; also `overclar_drop_pct`, the relative drop of the over-clarification rate in
            per cent, undefined if it was 0.
    """

    prompts: int
    before: Mapping[str, Interval]
    after: Mapping[str, Interval]
    change: Mapping[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; what is undefined is None."""
        sides = {"before": self.before, "after": self.after, "change": self.change}
        return {
            "prompts": self.prompts,
            **{side: {name: each.to_dict() for name, each in found.items()} for side, found in sides.items()},
        }


def paired(frame: pl.DataFrame, before: str, after: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The episodes of both policies in one mode, row by row about the same prompt with the same seed.

    Raises:
        EvaluationError: when a policy has no episode here, or a prompt was answered by one of the two only.
    """
    sides = [frame.filter(pl.col("policy") == name).sort(_KEY) for name in (before, after)]
    for name, side in zip((before, after), sides, strict=True):
        if not side.height:
            raise EvaluationError(f"policy '{name}' answered no prompts; let both policies answer the same ones")
    for one, other, name in ((0, 1, after), (1, 0, before)):
        alone = sides[one].join(sides[other], on=_KEY, how="anti")
        if alone.height:
            raise EvaluationError(
                f"policy '{name}' did not answer {alone.height} prompts that the other one answered, for example "
                f"'{alone['row_id'][0]}' of seed {alone['seed'][0]}; let both answer the same ones"
            )
    assert sides[0].select(OF_PROMPT).equals(sides[1].select(OF_PROMPT)), "a checked frame agrees about its prompts"
    return sides[0], sides[1]


def contrast(frame: pl.DataFrame, *, before: str, after: str, confidence: float, resamples: int, seed: int) -> Contrast:
    """Compare two policies on the episodes of one mode.

    Args:
        frame: checked episodes of one mode, see `rc1_lib.evaluation.episodes`; several training seeds are pooled.
        before: the policy to compare with.
        after: the policy that is judged.
        confidence: of the intervals, in (0, 1).
        resamples: bootstrap samples of source questions.
        seed: of the bootstrap.

    Raises:
        EvaluationError: as `paired`.
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
    return Contrast(
        prompts=first.height,
        before={name: intervals[f"before.{name}"] for name in FIGURES},
        after={name: intervals[f"after.{name}"] for name in FIGURES},
        change={name: intervals[f"change.{name}"] for name in CHANGES},
    )


class _Statistics:
    """Every figure of both policies and every change, as a function of the pairs' weights."""

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
    """Shape (episodes, 2 * ratios): the numerators of all ratios, then their denominators."""
    found = ratios()
    assert (*found, GAP) == FIGURES
    over = [ratio.over.cast(pl.Float64).alias(f"over.{name}") for name, ratio in found.items()]
    of = [ratio.of.cast(pl.Float64).alias(f"of.{name}") for name, ratio in found.items()]
    return (
        frame.with_columns(*over, *of)
        .select([f"{part}.{name}" for part in ("over", "of") for name in found])
        .to_numpy()
    )
