"""Score stored rollouts again, and compare old and new on the same rollouts: nothing is sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.calibration.weights_file import read_weights
from rc1_lib.environment.rewards import RewardSettings, training_rewards
from rc1_lib.errors import ConfigError, RowError
from rc1_lib.extras.rollouts.means import MOST, means
from rc1_lib.extras.rollouts.read import NUMBER, dialogues
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import Task
from rc1_lib.reward.weighted_judge import WeightedJudge, finish
from rc1_lib.run import Run
from rc1_lib.task_specs import answer_in, is_right
from rc1_lib.workspace.artifacts import atomic_write, now, sha256_json, write_json

OUTCOME = ("solved", "right", "asked", "off_target", "turns", "hops", "tool_errors", "malformed", "tokens")
"""What an evaluated episode records."""
_DIGITS = 9
"""Scores are compared after rounding to so many decimals: what differs by less differs by rounding."""


def of_episodes(episodes: pl.DataFrame, old: RewardSettings, new: RewardSettings) -> pl.DataFrame:
    """Return evaluated episodes (`rc1_lib.evaluation.episodes`), their prompts, and their rewards `old` and `new`."""
    named = episodes.with_row_index("line", 1).with_columns(
        main="judged", clarifications="asked", needs_clarification="needs"
    )
    paid = {side: training_rewards(by, pl.col("malformed")) for side, by in (("old", old), ("new", new))}
    return named.with_columns(group=pl.format("{}/{}", "seed", "row_id"), question="source_id", **paid)


def by_rule(frame: pl.DataFrame, task: Task) -> pl.Series:
    """Return 1 for final answers that are right by the task's rule, else 0; null without a gold answer."""
    if frame["gold"].null_count() == frame.height:
        raise RowError(f"--task {task}: no rollout has a gold answer (answer, ground_truth, gts, gold or solution)")
    paid = [
        None if gold is None else float(is_right(task, answer_in(task, said), answer_in(task, gold)))
        for said, gold in frame.select("final", "gold").iter_rows()
    ]
    return pl.Series("new", paid, dtype=pl.Float64)


def by_formula(frame: pl.DataFrame, formula: str) -> pl.Series:
    """Return what an expression of SQL makes of `traits_of(frame)`; null where one of them is missing, which is not 0.

    Raises:
        ConfigError: when it is not an expression of these names, or does not yield finite numbers.
    """
    if f"{NUMBER}characters" in frame.columns:
        raise ConfigError("--formula: the records have a number `characters` of their own; rename it")
    known = frame.select(**{name.removeprefix(NUMBER): name for name in traits_of(frame)})
    try:
        new = known.with_columns(new=pl.sql_expr(formula).cast(pl.Float64))["new"]
    except pl.exceptions.PolarsError as error:
        have, why = ", ".join(known.columns), str(error).partition("\n")[0]
        raise ConfigError(f"--formula {formula}: {why}; expected an expression of {have}") from None
    if odd := (~new.is_finite()).arg_true().to_list():
        line, value = frame["line"][odd[0]], new[odd[0]]
        raise ConfigError(f"--formula {formula}: yields {value} for line {line}, expected a number")
    return new


def by_judge(run: Run, frame: pl.DataFrame, *, failed_only: bool) -> pl.Series:
    """Return the judged scores, by the run's judge and weights; null where the judge gives none.

    Args:
        failed_only: ask about rollouts without a reward only, and keep the rewards of the others.

    Raises:
        RC1Error: when there are no weights, or the judge cannot be asked, stopped, or fails too often; what it has
            answered is kept.
    """
    asked = frame.with_row_index().filter(pl.col("reward").is_null() | (not failed_only))
    weighted = WeightedJudge(run, read_weights(run, dimensions(run)))
    scores = [one.reward for one in finish(partial(weighted.rate, dialogues(asked)))]
    return frame["reward"].scatter(asked["index"], pl.Series(scores, dtype=pl.Float64)).alias("new")


def traits_of(frame: pl.DataFrame) -> tuple[str, ...]:
    """Return the columns that say what a rollout is like: the records' own numbers, and `characters`."""
    return tuple(name for name in frame.columns if name.startswith(NUMBER) or name == "characters")


def compare(frame: pl.DataFrame, traits: Sequence[str], resamples: int) -> dict[str, Any]:
    """Compare old and new scores of the same rollouts; intervals resample whole questions.

    Args:
        frame: `group` (the prompt), `question`, `old`, `new` (Float64), and the `traits`: numbers or truth values.

    Returns:
        JSON-ready: `score`, old, new and change, of all and by `policy`, if there is one; `rows`, counts; `pairs` of
        rollouts of one prompt, the share of each kind of preference; `preferred`, the mean of each trait of the best
        paid rollout of a prompt, old, new and change (equally paid ones count in equal parts).

    Raises:
        RowError: when no rollout has both scores.
    """
    frame = frame.with_columns(pl.col("old", "new").round(_DIGITS))
    both = frame.drop_nulls(["old", "new"]).with_columns(change=pl.col("new") - pl.col("old"))
    if not both.height:
        raise RowError("no rollout has an old and a new score, so there is nothing to compare")
    policies = both.partition_by("policy") if "policy" in both.columns else []
    sides = {"all": both} | {str(one["policy"][0]): one for one in policies}
    return {
        "score": {
            name: _json(means(part.select("old", "new", "change"), part["question"], resamples))
            for name, part in sides.items()
        },
        "rows": {
            "rollouts": frame.height,
            "compared": both.height,
            "up": (both["change"] > 0).sum(),
            "down": (both["change"] < 0).sum(),
            "newly scored": (frame["old"].is_null() & frame["new"].is_not_null()).sum(),
            "no longer scored": (frame["old"].is_not_null() & frame["new"].is_null()).sum(),
        },
        "pairs": _preferences(both, resamples),
        "preferred": _preferred(both, traits, resamples),
    }


def write_rescored(
    run: Run, about: Mapping[str, Any], frame: pl.DataFrame, traits: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Compare, and write the report and the rollouts whose score changed; return the report's path and the report.

    Args:
        about: what was scored again, and how, which names the report.
        frame: as `compare` takes it, with `line`.
    """
    found = compare(frame, traits, run.config.gates.shared.resamples)
    key = sha256_json({**about, "code": code_sha256()})[:12]
    place, rows = (f"reports/rescore_{key}{end}" for end in (".json", ".rows.jsonl"))
    moved = frame.select("line", "group", "old", "new", change=(pl.col("new") - pl.col("old")).round(_DIGITS))
    moved = moved.filter(pl.col("change").ne_missing(0) & ~(pl.col("old").is_null() & pl.col("new").is_null()))
    with atomic_write(run.workspace.path(rows)) as stream:
        stream.write(moved.sort(pl.col("change").abs(), descending=True).write_ndjson().encode())
    body = {"time": now(), **about, **found, "changed": {"path": rows, "rows": moved.height}}
    write_json(run.workspace.path(place), body)
    return place, body


def _preferences(both: pl.DataFrame, resamples: int) -> dict[str, Any]:
    each = both.select("group", "question", "old", "new", at=pl.int_range(pl.len()).over("group"))
    each = each.filter(pl.col("at") < MOST)
    pairs = each.join(each, on="group", suffix="_2").filter(pl.col("at") < pl.col("at_2"))
    if not pairs.height:
        return {"compared": 0}
    old, new = ((pl.col(side) - pl.col(f"{side}_2")).sign() for side in ("old", "new"))
    kinds = {
        "same": old == new,
        "reversed": (old == -new) & (old != 0),
        "newly decided": (old == 0) & (new != 0),
        "no longer decided": (old != 0) & (new == 0),
    }
    return {"compared": pairs.height, **_json(means(pairs.select(**kinds), pairs["question"], resamples))}


def _preferred(both: pl.DataFrame, traits: Sequence[str], resamples: int) -> dict[str, Any]:
    several = both.filter(pl.len().over("group") > 1).with_columns(pl.col(traits).cast(pl.Float64))
    spread = several.group_by("group").agg(pl.col(traits).max() - pl.col(traits).min())
    if not (traits := [name for name in traits if (spread[name] > 0).any()]):
        return {}
    best = [
        several.filter(pl.col(side) == pl.col(side).max().over("group"))
        .group_by("group")
        .agg(pl.col("question").first(), pl.col(traits).mean())
        .sort("group")
        for side in ("old", "new")
    ]
    old, new = (one.select(traits) for one in best)
    sides = {"old": old, "new": new, "change": new - old}
    found = {side: means(values, best[0]["question"], resamples) for side, values in sides.items()}
    return {trait.removeprefix(NUMBER): _json({side: found[side][trait] for side in sides}) for trait in traits}


def _json(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.to_dict() for name, one in found.items()}
