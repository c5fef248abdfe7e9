"""The old score against the new reward on the same dialogues: do they agree, and which predicts success better?

Agreement is measured by Spearman's rho, Kendall's tau-b, the overlap of the top tenth and fifth, and how much of the
top tenth's lead is kept; all of them handle ties (`rc1_lib.reward.rank_agreement`). Intervals come from a paired
bootstrap over source questions: each resample uses both scores of the same dialogues.

A judge must not mistake the length of answers for quality: that judges prefer long answers is known as verbosity bias
(Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", 2023).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.checks import defined
from rc1_lib.errors import RC1Error
from rc1_lib.records import BUCKETS
from rc1_lib.reward.intervals import Interval, bootstrap
from rc1_lib.reward.rank_agreement import (
    auc,
    improvement_pct,
    kendall_tau_b,
    spearman,
    top_lead_kept,
    top_membership,
    top_overlap,
    without_rounding_noise,
)

Floats = NDArray[np.float64]
_SHARES = {"top10_overlap": 0.10, "top20_overlap": 0.20}
_BEST = 0.5
"""Share of dialogues that a selection by score keeps, for the split by difficulty and task."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The findings of a shadow run.

    Attributes:
        figures: agreement and correlation with success, with intervals; the new reward without the difficulty factor.
        with_factor: the same figures, without intervals, for the reward with the factor.
        without_price: the same for the score alone, without the penalty on needless questions, to show its effect.
        split: `difficulty` and `task` -> group -> figures of the better half by each score.
        rows: dialogues with scores and a weight above 0.
        weight: the sum of their weights; less than `rows` if some are unstable.
        solved: how many of them succeeded.
        constant: weighed dimensions with one score in all of them, which cannot distinguish dialogues, and that score.
        repeats: weighed dimensions that vary -> the highest correlation with one before it; none for the first.
    """

    figures: Mapping[str, Interval]
    with_factor: Mapping[str, float]
    without_price: Mapping[str, float]
    split: Mapping[str, Mapping[str, Mapping[str, float]]]
    rows: int
    weight: float
    solved: int
    constant: Mapping[str, float]
    repeats: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with None for undefined figures."""
        flat = {
            f"{name}_{bucket}": defined(found[name])
            for bucket, found in self.split["difficulty"].items()
            for name in found
            if name != "n"
        }
        return {
            **{name: defined(figure.value) for name, figure in self.figures.items()},
            **flat,
            "figures": {name: figure.to_dict() for name, figure in self.figures.items()},
            "with_difficulty_factor": {name: defined(value) for name, value in self.with_factor.items()},
            "without_price_of_questions": {name: defined(value) for name, value in self.without_price.items()},
            "split": {
                by: {group: {name: defined(value) for name, value in found.items()} for group, found in groups.items()}
                for by, groups in self.split.items()
            },
            "rows": self.rows,
            "weight": self.weight,
            "solved": self.solved,
            "unsolved": self.rows - self.solved,
            "constant": dict(self.constant),
            "repeats": dict(self.repeats),
        }


def compare(
    frame: pl.DataFrame, *, weighed: Collection[str], confidence: float, resamples: int, seed: int
) -> Comparison:
    """Compare the columns `old` and `reward` of scored dialogues.

    Args:
        frame: one row per dialogue: `old, main, reward, total` (Float64), `solved` (Boolean), `weight`, `group` (the
            source question), `task`, `bucket`, `needs_clarification`, `clarifications`, `turns`, `answer_length`, and
            the weighed dimensions. Rows without a score are left out.
        weighed: the dimensions with weight in the new reward.
        resamples: bootstrap samples of source questions.

    Raises:
        RC1Error: when no dialogue has scores.
    """
    scored = pl.col("old").is_not_null() & pl.col("reward").is_not_null()
    known = frame.filter(scored & (pl.col("weight") > 0))
    if not known.height:
        raise RC1Error(
            "no dialogue with a weight above 0 has scores, so there is nothing to compare; find out why they lack "
            "scores"
        )
    old, main, new, total = (
        without_rounding_noise(known[name].to_numpy()) for name in ("old", "main", "reward", "total")
    )
    success = known["solved"].cast(pl.Float64).to_numpy()
    lengths = known["answer_length"].to_numpy().astype(np.float64)
    weight = known["weight"].to_numpy().astype(np.float64)

    def figures(counts: Floats) -> dict[str, float]:
        return _figures(old, new, success, lengths, counts)

    intervals = bootstrap(
        figures,
        groups=known["group"].to_numpy(),
        weights=weight,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    return Comparison(
        figures=intervals,
        with_factor=_figures(old, total, success, lengths, weight),
        without_price=_figures(old, main, success, lengths, weight),
        split={
            "difficulty": _split(known, "bucket", [name for name in BUCKETS if name in known["bucket"]]),
            "task": _split(known, "task", sorted(known["task"].drop_nulls().unique().to_list())),
        },
        rows=known.height,
        weight=float(weight.sum()),
        solved=int(success.sum()),
        constant={name: float(known[name][0]) for name in weighed if known[name].n_unique() == 1},
        repeats=_repeats({name: known[name].to_numpy() for name in weighed if known[name].n_unique() > 1}),
    )


def _repeats(dimensions: Mapping[str, Floats]) -> dict[str, float]:
    # Of the grades themselves, not of their ranks: noise among ties would hide that two are the same.
    names = list(dimensions)
    return {
        name: max(float(np.corrcoef(dimensions[name], dimensions[other])[0, 1]) for other in names[:at])
        for at, name in enumerate(names)
        if at
    }


def _figures(old: Floats, new: Floats, success: Floats, lengths: Floats, weight: Floats) -> dict[str, float]:
    by_old, by_new = spearman(old, success, weight), spearman(new, success, weight)
    return {
        "spearman": spearman(old, new, weight),
        "kendall_tau": kendall_tau_b(old, new, weight),
        **{name: top_overlap(old, new, share, weight) for name, share in _SHARES.items()},
        "top10_lead_kept": top_lead_kept(old, new, _SHARES["top10_overlap"], weight),
        "corr_to_success_old": by_old,
        "corr_to_success_new": by_new,
        "corr_gain": by_new - by_old,
        "corr_improve_pct": improvement_pct(by_new, by_old),
        "auc_old": auc(old, success, weight),
        "auc_new": auc(new, success, weight),
        "length_corr_old": length_correlation(old, lengths, success, weight),
        "length_corr_new": length_correlation(new, lengths, success, weight),
    }


def _split(frame: pl.DataFrame, column: str, groups: list[str]) -> dict[str, dict[str, float]]:
    """Return for every group its success, and the figures of its better half by each score."""
    return {group: _halves(frame.filter(pl.col(column) == group)) for group in groups}


def _halves(frame: pl.DataFrame) -> dict[str, float]:
    success = frame["solved"].cast(pl.Float64).to_numpy()
    weight = frame["weight"].to_numpy().astype(np.float64)
    turns = frame["turns"].cast(pl.Float64).to_numpy()
    asked = (frame["clarifications"] > 0).cast(pl.Float64).to_numpy()
    complete = (~frame["needs_clarification"]).cast(pl.Float64).to_numpy()
    found = {"n": float(frame.height), "success": _mean(success, weight)}
    for name, column in (("old", "old"), ("new", "reward")):
        kept = weight * top_membership(without_rounding_noise(frame[column].to_numpy()), _BEST, weight)
        found[f"success_{name}"] = _mean(success, kept)
        found[f"overclar_rate_{name}"] = _mean(asked, kept * complete)
        found[f"avg_turns_{name}"] = _mean(turns, kept)
    found["delta_pp"] = 100.0 * (found["success_new"] - found["success_old"])
    return found


def _mean(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total > 0 else float("nan")


def length_correlation(scores: Floats, lengths: Floats, success: Floats, weights: Floats) -> float:
    """Compute the rank correlation of scores with the answers' length among dialogues of the same outcome.

    Good answers may well be longer. So the correlation is computed separately for solved and unsolved dialogues, and
    the two are averaged by weight: what remains is a preference for length itself.

    Args:
        scores: shape (n,).
        lengths: shape (n,).
        success: shape (n,), 0 or 1.
        weights: shape (n,), the weight of each dialogue.

    Returns:
        In [-1, 1]; 0 if all answers of an outcome have the same length, since no length can be preferred then; NaN if
        the lengths vary and the scores do not.
    """
    total = found = 0.0
    groups = [same for outcome in (0.0, 1.0) if (same := success == outcome).any()]
    if all(np.unique(lengths[same]).size == 1 for same in groups):
        return 0.0
    for same in groups:
        correlation = spearman(scores[same], lengths[same], weights[same])
        if not np.isnan(correlation):
            found += float(weights[same].sum()) * correlation
            total += float(weights[same].sum())
    return found / total if total else float("nan")
