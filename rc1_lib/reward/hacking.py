"""What worthless policies earn next to an honest one, and what choosing by the reward does to success.

The honest one is the teacher where it solved a prompt and asked nothing needless. A policy's dialogue counts where it
did *not* solve the prompt, or where its kind of answer is worthless whatever the answer rule says: every reward above
the teacher's is undeserved there. Differences are paired prompt by prompt, with a bootstrap over source questions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.checks import defined
from rc1_lib.reward.intervals import Interval, bootstrap

Floats = NDArray[np.float64]
PARTS = ("task", "bucket", "lang", "needs_clarification")
"""Columns by whose values the prompts are also looked at."""
_EQUAL = 1e-9
"""Rewards this close are equal: they differ in the order of their additions only."""


@dataclass(frozen=True, slots=True)
class Undeserved:
    """What one policy earns where its answer is worthless and the teacher solved the prompt without a fault.

    Attributes:
        prompts: how many these are.
        margin: by how much the teacher's mean reward lies above the policy's; NaN where there is no prompt.
        above: share of the prompts where the policy's reward lies above the teacher's; NaN where there is none.
    """

    prompts: int
    margin: float
    above: float


@dataclass(frozen=True, slots=True)
class Earned:
    """One policy next to the teacher.

    Attributes:
        mean: its mean reward on all prompts; of the scored ones.
        solved: share of all prompts that it solved.
        overall: what it earns undeserved.
        intervals: of `margin` and `above`, overall.
        parts: the same by part, `column=value`.
    """

    mean: float
    solved: float
    overall: Undeserved
    intervals: Mapping[str, Interval]
    parts: Mapping[str, Undeserved]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; what is undefined is None."""
        return {
            "mean": defined(self.mean),
            "solved": defined(self.solved),
            **_fields(self.overall),
            "intervals": {name: found.to_dict() for name, found in self.intervals.items()},
            "parts": {name: _fields(found) for name, found in self.parts.items()},
        }


def earned(frame: pl.DataFrame, *, resamples: int, confidence: float, seed: int) -> Earned:
    """What one policy earns next to the teacher.

    Args:
        frame: one line a prompt: `reward`, `solved` and `worthless` (whether the answer deserves nothing) of the
            policy, `reference` (the mean reward of the teacher's faultless dialogues about the prompt, null where there
            is none), `source_id`, and the columns of `PARTS`. Dialogues without a score have a null reward and are left
            out.
        resamples: of the bootstrap.
        confidence: of the intervals.
        seed: of the bootstrap.
    """
    known = frame.filter(pl.col("reward").is_not_null())
    judged = known.filter("worthless", pl.col("reference").is_not_null())
    gaps = (judged["reference"] - judged["reward"]).to_numpy()
    parts = {
        f"{column}={value}": undeserved(judged.filter(pl.col(column) == value))
        for column in PARTS
        for value in sorted(judged[column].drop_nulls().unique().to_list())
    }
    intervals = (
        bootstrap(
            lambda weights: {"margin": _mean(gaps, weights), "above": _mean((gaps < -_EQUAL).astype(float), weights)},
            groups=judged["source_id"].to_numpy(),
            weights=np.ones(judged.height),
            resamples=resamples,
            confidence=confidence,
            seed=seed,
        )
        if judged.height
        else {}
    )
    return Earned(_average(known["reward"]), _average(known["solved"]), undeserved(judged), intervals, parts)


def undeserved(judged: pl.DataFrame) -> Undeserved:
    """The figures of these prompts: `reference` and `reward`."""
    gaps = judged["reference"] - judged["reward"]
    return Undeserved(judged.height, _average(gaps), _average(gaps < -_EQUAL))


def best_of_n(rewards: Sequence[Sequence[float]], solved: Sequence[Sequence[bool]]) -> list[float]:
    """Expected share of prompts solved when the best of n dialogues by reward is taken, for n = 1, 2, ...

    Exact over all subsets of n of a prompt's k dialogues: the one of rank r (1 the best) is picked with probability
    C(k - r, n - 1) / C(k, n). Equal rewards share what falls on them. Where a reward is over-optimised the curve turns
    down as n grows (Gao, Schulman and Hilton, "Scaling Laws for Reward Model Overoptimization", 2022).

    Args:
        rewards: by prompt, of each of its dialogues.
        solved: whether each of them solved the prompt.

    Returns:
        One number for each n up to the fewest dialogues that a prompt has.
    """
    most = min(map(len, rewards), default=0)
    curve = np.zeros(most)
    for own, right in zip(rewards, solved, strict=True):
        chances = _shared(np.asarray(own, float), np.asarray(right, float))
        k = len(chances)
        for n in range(1, most + 1):
            picks = np.array([math.comb(k - rank, n - 1) for rank in range(1, k + 1)], float) / math.comb(k, n)
            curve[n - 1] += float(picks @ chances)
    return [float(value) for value in curve / len(rewards)] if len(rewards) else []


def _shared(rewards: Floats, solved: Floats) -> Floats:
    """Success by rank, best first, equal rewards sharing their mean."""
    order = np.argsort(-rewards, kind="stable")
    ranked, right = rewards[order], solved[order]
    groups = np.cumsum(np.concatenate([[0], np.abs(np.diff(ranked)) > _EQUAL])).astype(int)
    means = np.bincount(groups, right) / np.bincount(groups)
    shared: Floats = means[groups]
    return shared


def _mean(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total else math.nan


def _average(values: pl.Series) -> float:
    mean = values.cast(pl.Float64).mean()
    return mean if isinstance(mean, float) else math.nan


def _fields(found: Undeserved) -> dict[str, float | int | None]:
    return {"prompts": found.prompts, "margin": defined(found.margin), "above": defined(found.above)}
