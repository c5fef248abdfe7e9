"""What adversarial policies earn compared with an honest one, and how selection by the reward affects success.

The honest one is the scripted expert where it solved a prompt without needless questions. A policy's dialogue counts if
it did *not* solve the prompt, or if its kind of answer is worthless whatever the answer rule says: there, any reward
above the expert's is undeserved. Differences are paired prompt by prompt, with a bootstrap over source questions.
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
"""Columns that split the prompts into parts, which are checked too."""
_EQUAL = 1e-9
"""Rewards this close are equal: they differ only in the order of additions."""


@dataclass(frozen=True, slots=True)
class Undeserved:
    """What one policy earns where its answer is worthless and the scripted expert solved the prompt faultlessly.

    Attributes:
        prompts: how many such prompts there are.
        margin: by how much the expert's mean reward exceeds the policy's; NaN without prompts.
        above: share of the prompts where the policy's reward exceeds the expert's; NaN without prompts.
    """

    prompts: int
    margin: float
    above: float


@dataclass(frozen=True, slots=True)
class Earned:
    """One policy compared with the scripted expert.

    Attributes:
        mean: its mean reward on all scored prompts.
        solved: share of all prompts that it solved.
        right: share of all prompts whose answer the rule called right, also where a needed question was not asked.
        intervals: of `margin` and `above`, overall.
        parts: the same by part, `column=value`.
    """

    mean: float
    solved: float
    right: float
    overall: Undeserved
    intervals: Mapping[str, Interval]
    parts: Mapping[str, Undeserved]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; what is undefined is None."""
        return {
            "mean": defined(self.mean),
            "solved": defined(self.solved),
            "right": defined(self.right),
            **_fields(self.overall),
            "intervals": {name: found.to_dict() for name, found in self.intervals.items()},
            "parts": {name: _fields(found) for name, found in self.parts.items()},
        }


def earned(frame: pl.DataFrame, *, resamples: int, confidence: float, seed: int) -> Earned:
    """Compare what one policy earns with what the scripted expert earns.

    Args:
        frame: one line per prompt: `reward`, `solved`, `lucky` and `worthless` (whether the answer deserves nothing)
            of the policy, `reference` (the mean reward of the expert's faultless dialogues about the prompt, null if
            there are none), `source_id`, and the columns of `PARTS`. Dialogues without a score have a null reward and
            are left out.
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
    right = _average(known["solved"] | known["lucky"])
    return Earned(_average(known["reward"]), _average(known["solved"]), right, undeserved(judged), intervals, parts)


def undeserved(judged: pl.DataFrame) -> Undeserved:
    """Compute the figures of these prompts, from `reference` and `reward`."""
    gaps = judged["reference"] - judged["reward"]
    return Undeserved(judged.height, _average(gaps), _average(gaps < -_EQUAL))


def best_of_n(rewards: Sequence[Sequence[float]], solved: Sequence[Sequence[bool]]) -> list[float]:
    """Compute the expected share of prompts solved if the best of n dialogues by reward is picked, for n = 1, 2, ...

    Exact over all subsets of n of a prompt's k dialogues: the one of rank r (1 is the best) is picked with probability
    C(k - r, n - 1) / C(k, n). Equal rewards share their probability. If a reward is over-optimised, the curve falls as
    n grows (Gao, Schulman and Hilton, "Scaling Laws for Reward Model Overoptimization", 2022).

    Args:
        rewards: for each prompt, the rewards of its dialogues.
        solved: whether each of them solved the prompt.

    Returns:
        One number for each n up to the smallest number of dialogues of any prompt.
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
    """Return success by rank, best first; equal rewards share their mean."""
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
