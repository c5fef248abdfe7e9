"""The ablation of the over-clarification penalty: what training would reinforce with it and without it.

Best-of-N selection picks the dialogue with the highest reward, and policy gradients push towards it. The choices with
and without the penalty are compared prompt by prompt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.errors import RC1Error
from rc1_lib.reward.intervals import Interval, bootstrap

Floats = NDArray[np.float64]
_ROUNDING = 1e-9
"""Rewards this close are equal: they differ only in the order of additions."""
_DIGITS = 12
"""Figures are rounded to this many digits, so that differences that cancel give exactly 0."""
_NEEDS = "needs_clarification"
_OF_DIALOGUE = ("prompt", _NEEDS, "clarifications", "solved", "turns")
_OF_SCORE = ("main", "penalty")


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of the chosen dialogues.

    Attributes:
        overclar_rate: where nothing is missing, the share of prompts with at least one clarifying question; NaN if
            there is no such prompt.
        success: share of prompts solved.
        avg_turns: mean number of assistant messages.
        ask_rate_where_needed: where something is missing, the share of prompts with at least one clarifying question.
    """

    overclar_rate: float
    success: float
    avg_turns: float
    ask_rate_where_needed: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """The figures without and with the penalty, and their paired differences.

    Attributes:
        without: the figures without the penalty.
        rate_drop_pct: by how many per cent the over-clarification rate falls; NaN if it is 0 without the penalty.
        turns_up: by how many turns the mean rises.
        success_drop_pp: by how many percentage points success falls.
    """

    prompts: int
    without: Figures
    with_penalty: Figures
    rate_drop_pct: float
    turns_up: float
    success_drop_pp: float

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy, with None for undefined figures."""
        body = asdict(self)
        return _plain({("with" if name == "with_penalty" else name): value for name, value in body.items()})


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a comparison.

    Attributes:
        dialogues: all dialogues.
        unscored: dialogues without a score, which are never chosen.
        left_out: prompts without any scored dialogue, which are not compared.
        with_choice: prompts with more than one scored dialogue.
        nothing_missing: prompts where nothing is missing.
        differing: among these, prompts where some scored dialogues ask and others do not.
        unavoidable: among these, prompts where every scored dialogue asks, so that no choice can help.
        changed: prompts where the penalty changes how much the chosen dialogues ask.
    """

    dialogues: int
    unscored: int
    prompts: int
    left_out: int
    with_choice: int
    nothing_missing: int
    differing: int
    unavoidable: int
    changed: int


@dataclass(frozen=True, slots=True)
class Ablation:
    """The comparison over all prompts, with its intervals."""

    overall: Contrast
    intervals: Mapping[str, Interval]
    """Intervals of `rate_drop_pct`, `turns_up` and `success_drop_pp`, from resampled prompts."""
    counts: Counts

    @property
    def coverage(self) -> float:
        """Share of the dialogues that are scored."""
        return 1.0 - self.counts.unscored / self.counts.dialogues

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy, with None for undefined figures.

        `figures` has `without` and `with`, and each difference with its interval.
        """
        intervals = {name: interval.to_dict() for name, interval in self.intervals.items()}
        return {
            "figures": {**self.overall.to_dict(), **intervals},
            "counts": asdict(self.counts),
            "coverage": self.coverage,
        }


def ablate(frame: pl.DataFrame, *, confidence: float, resamples: int, seed: int) -> Ablation:
    """Compare the dialogues chosen by the main reward alone with those chosen by the main reward minus the penalty.

    For each prompt the dialogues with the highest reward are chosen; those that tie share the prompt evenly.

    Args:
        frame: dialogues with the columns `prompt`, `main` (null without a score), `penalty`, `clarifications`,
            `needs_clarification` (the same for all dialogues about a prompt), `solved`, `turns`.
        resamples: bootstrap samples of prompts.

    Raises:
        RC1Error: when there are no dialogues, a column is missing or has nulls or rewards that are not numbers, or
            dialogues disagree about their prompt.
    """
    _check(frame, (*_OF_DIALOGUE, *_OF_SCORE), may_be_null="main")
    scored = frame.filter(pl.col("main").is_not_null())
    finite = scored.select((pl.col("main").is_finite() & pl.col("penalty").is_finite()).all()).item()
    if not finite:
        raise RC1Error(
            "the ablation found a reward or a penalty that is not a finite number; use null for a missing score"
        )
    prompts = _prompts(scored)
    pairs = _paired(
        prompts,
        _means(_best(scored, pl.col("main"))),
        _means(_best(scored, pl.col("main") - pl.col("penalty"))),
    )
    counts = Counts(
        dialogues=frame.height,
        unscored=frame.height - scored.height,
        prompts=prompts.height,
        left_out=frame["prompt"].n_unique() - prompts.height,
        **_shown(prompts),
        changed=_changed(pairs),
    )
    return _ablation(pairs, counts, confidence=confidence, resamples=resamples, seed=seed)


def _check(frame: pl.DataFrame, columns: Sequence[str], may_be_null: str = "") -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise RC1Error(f"the ablation needs the columns {', '.join(columns)}; missing: {', '.join(missing)}")
    if not frame.height:
        raise RC1Error(
            "the ablation got no dialogues; write the rollouts of the shadow set (rc1 build-pool) and score them"
        )
    holes = [name for name in columns if name != may_be_null and frame[name].null_count()]
    if holes:
        raise RC1Error(f"the ablation found dialogues without {', '.join(holes)}; only 'main' may be null (no score)")
    torn = frame.group_by("prompt").agg(pl.col(_NEEDS).n_unique()).filter(pl.col(_NEEDS) > 1)
    if torn.height:
        raise RC1Error(
            f"dialogues about the prompt '{torn['prompt'].sort()[0]}' disagree in {_NEEDS}, "
            f"which belongs to the prompt; use the same value for all dialogues about a prompt"
        )


def _prompts(dialogues: pl.DataFrame) -> pl.DataFrame:
    """Return one row per prompt, ordered by name: its properties, its number of dialogues, and how many of them ask."""
    return (
        dialogues.group_by("prompt")
        .agg(
            pl.col(_NEEDS).first(),
            dialogues=pl.len(),
            asking=(pl.col("clarifications") > 0).sum(),
        )
        .sort("prompt")
    )


def _shown(prompts: pl.DataFrame) -> dict[str, int]:
    plain, asking, dialogues = ~pl.col(_NEEDS), pl.col("asking"), pl.col("dialogues")
    return prompts.select(
        with_choice=(dialogues > 1).sum(),
        nothing_missing=plain.sum(),
        differing=(plain & (asking > 0) & (asking < dialogues)).sum(),
        unavoidable=(plain & (asking == dialogues)).sum(),
    ).row(0, named=True)


def _best(scored: pl.DataFrame, reward: pl.Expr) -> pl.DataFrame:
    """Return each prompt's dialogues with the highest reward, including ties."""
    return scored.filter(reward >= reward.max().over("prompt") - _ROUNDING)


def _means(chosen: pl.DataFrame) -> pl.DataFrame:
    """Average the chosen dialogues per prompt. The summands are integers, so their order does not matter."""
    return chosen.group_by("prompt").agg(
        asked=(pl.col("clarifications") > 0).mean(), solved=pl.col("solved").mean(), turns=pl.col("turns").mean()
    )


def _paired(prompts: pl.DataFrame, without: pl.DataFrame, with_penalty: pl.DataFrame) -> pl.DataFrame:
    """Return one row per prompt with `asked`, `solved`, `turns` for both choices, the second's as `<name>.with`."""
    return prompts.join(without, on="prompt", how="left", maintain_order="left").join(
        with_penalty, on="prompt", how="left", suffix=".with", maintain_order="left"
    )


def _changed(pairs: pl.DataFrame) -> int:
    return int((pairs["asked"] != pairs["asked.with"]).sum())


def _ablation(pairs: pl.DataFrame, counts: Counts, *, confidence: float, resamples: int, seed: int) -> Ablation:
    overall = _compare(pairs)
    figures = _Differences(pairs)
    if pairs.height:
        intervals = bootstrap(
            figures, groups=np.arange(pairs.height), weights=np.ones(pairs.height), resamples=resamples,
            confidence=confidence, seed=seed,
        )  # fmt: skip
    else:
        nothing = Interval(math.nan, math.nan, math.nan, confidence, 0)
        intervals = dict.fromkeys(figures(np.ones(0)), nothing)
    return Ablation(overall, intervals, counts)


def _compare(pairs: pl.DataFrame) -> Contrast:
    return Contrast(
        prompts=pairs.height,
        without=_figures(pairs, ""),
        with_penalty=_figures(pairs, ".with"),
        **_Differences(pairs)(np.ones(pairs.height)),
    )


def _figures(pairs: pl.DataFrame, suffix: str) -> Figures:
    needs = pairs[_NEEDS].to_numpy().astype(bool)
    asked, solved, turns = (pairs[name + suffix].to_numpy() for name in ("asked", "solved", "turns"))
    return Figures(
        overclar_rate=_mean(asked[~needs]),
        success=_mean(solved),
        avg_turns=_mean(turns),
        ask_rate_where_needed=_mean(asked[needs]),
    )


class _Differences:
    """The paired differences as a function of the prompts' weights.

    They are means of differences rather than differences of means, so that equal choices give exactly 0.
    """

    def __init__(self, pairs: pl.DataFrame) -> None:
        self._plain = ~pairs[_NEEDS].to_numpy().astype(bool)
        self._asked = pairs["asked"].to_numpy()
        self._asked_less = self._asked - pairs["asked.with"].to_numpy()
        self._solved_less = pairs["solved"].to_numpy() - pairs["solved.with"].to_numpy()
        self._turns_more = pairs["turns.with"].to_numpy() - pairs["turns"].to_numpy()

    def __call__(self, weights: Floats) -> dict[str, float]:
        plain = weights * self._plain
        asked = float(plain @ self._asked)
        return {
            "rate_drop_pct": round(100.0 * float(plain @ self._asked_less) / asked, _DIGITS) if asked > 0 else math.nan,
            "turns_up": _mean(self._turns_more, weights),
            "success_drop_pp": round(100.0 * _mean(self._solved_less, weights), _DIGITS),
        }


def _mean(values: Floats, weights: Floats | None = None) -> float:
    total = float(values.size if weights is None else weights.sum())
    summed = float(values.sum() if weights is None else weights @ values)
    return round(summed / total, _DIGITS) if total > 0 else math.nan


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    """Return nested figures with None instead of NaN."""
    return {
        name: _plain(value)
        if isinstance(value, dict)
        else None
        if isinstance(value, float) and math.isnan(value)
        else value
        for name, value in body.items()
    }
