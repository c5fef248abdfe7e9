"""The comparison of two policies in every mode, overall and by task, difficulty and wording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.evaluation.chance import Chance
from rc1_lib.evaluation.episodes import MODES, EvaluationError, Mode, checked
from rc1_lib.evaluation.metrics import hard, statuses_by
from rc1_lib.evaluation.paired import Contrast, contrast
from rc1_lib.records import BUCKETS
from rc1_lib.task_specs import task_names

BASE, TRAINED = "sft", "ppo"
WORDINGS = {False: "plain", True: "vague"}
"""Cue -> wording; whether a prompt sounds vague is independent of whether something is missing."""

_GROUPS: Mapping[str, Callable[[], pl.Expr]] = {
    "all": lambda: pl.col("row_id").is_not_null(),
    "need asking": lambda: pl.col("needs"),
    "clear": lambda: ~pl.col("needs"),
    "hard": hard,
}


def group_sizes() -> list[pl.Expr]:
    """Count the prompts of each group that decides a check; a frame has the columns of `SCHEMA` about prompts."""
    return [kind().sum().alias(name) for name, kind in _GROUPS.items()]


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison in one mode.

    Attributes:
        overall: the comparison over all prompts.
        by: `task`, `bucket` or `wording` -> group -> the comparison over its prompts.
        statuses: policy -> final status of episodes -> share, in [0, 1].
    """

    overall: Contrast
    by: Mapping[str, Mapping[str, Contrast]]
    statuses: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, with None for undefined ones."""
        return {
            "overall": self.overall.to_dict(),
            "by": {by: {name: found.to_dict() for name, found in groups.items()} for by, groups in self.by.items()},
            "statuses": {policy: dict(shares) for policy, shares in self.statuses.items()},
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A policy compared with the one it started from.

    Attributes:
        before: name of the initial policy.
        after: name of the policy under evaluation.
        prompts: training seed -> number of held-out prompts that its policy answered: `all` of them, and those that
            `need asking`, are `clear`, or are `hard` (of multi-hop tasks).
        modes: `sampled` and `greedy` -> the comparison.
        chance: how often one can be right without asking on these prompts; None if their answers were not given.
    """

    before: str
    after: str
    prompts: Mapping[int, Mapping[str, int]]
    modes: Mapping[Mode, Compared]
    chance: Chance | None = None

    @property
    def groups(self) -> dict[str, int]:
        """The counts of `prompts` summed over all seeds."""
        return {name: sum(counts[name] for counts in self.prompts.values()) for name in _GROUPS}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, with None for undefined ones."""
        return {
            "before": self.before,
            "after": self.after,
            "prompts": {str(seed): dict(counts) for seed, counts in self.prompts.items()},
            "groups": self.groups,
            "modes": {mode: compared.to_dict() for mode, compared in self.modes.items()},
            "chance": None if self.chance is None else self.chance.to_dict(),
        }


def evaluate(
    frame: pl.DataFrame,
    *,
    confidence: float,
    resamples: int,
    seed: int,
    before: str = BASE,
    after: str = TRAINED,
    chance: Chance | None = None,
) -> Evaluation:
    """Compare two policies in both modes, by `paired.contrast`.

    Args:
        frame: one episode for every policy, mode, training seed and prompt. Several training seeds are pooled; pass
            the episodes of one seed to evaluate it separately.
        confidence: confidence level of the intervals, in (0, 1).
        resamples: number of bootstrap samples.
        before: name of the initial policy.
        after: name of the policy under evaluation.
        chance: how often one can be right without asking on these prompts, for the reports.

    Raises:
        EvaluationError: when the frame has no episodes or episodes of other policies, or a prompt lacks an episode of a
            policy in a mode.
    """
    frame = checked(frame).with_columns(wording=pl.col("cue").replace_strict(WORDINGS, return_dtype=pl.String))
    _check_complete(frame, before, after)
    prompts = frame.filter((pl.col("policy") == before) & (pl.col("mode") == MODES[0]))

    def compare(part: pl.DataFrame) -> Contrast:
        return contrast(part, before=before, after=after, confidence=confidence, resamples=resamples, seed=seed)

    modes: dict[Mode, Compared] = {}
    for mode in MODES:
        episodes = frame.filter(pl.col("mode") == mode)
        by = {
            column: {
                name: compare(episodes.filter(pl.col(column) == name)) for name in names if name in episodes[column]
            }
            for column, names in (("task", task_names()), ("bucket", BUCKETS), ("wording", WORDINGS.values()))
        }
        modes[mode] = Compared(compare(episodes), by, statuses_by(episodes, "policy"))
    counted = prompts.group_by("seed").agg(group_sizes()).sort("seed")
    return Evaluation(before, after, {row.pop("seed"): row for row in counted.to_dicts()}, modes, chance)


def _check_complete(frame: pl.DataFrame, before: str, after: str) -> None:
    """Reject episodes of other policies, and prompts that lack an answer of a policy in a mode."""
    others = set(frame["policy"]) - {before, after}
    if others:
        raise EvaluationError(
            f"there are also episodes of {', '.join(sorted(others))}; an evaluation compares only '{before}' and "
            f"'{after}'"
        )
    expected = 2 * len(MODES)
    counted = frame.group_by("seed", "row_id").len().filter(pl.col("len") != expected).sort("seed", "row_id")
    if counted.height:
        raise EvaluationError(
            f"{counted.height} prompts lack an answer of a policy in a mode, for example "
            f"'{counted['row_id'][0]}' of seed {counted['seed'][0]} with {counted['len'][0]} of {expected} episodes; "
            f"let '{before}' and '{after}' answer every prompt {' and '.join(MODES)}"
        )
