"""Rows with all parts of a reward: the judge's medians, dimensions by rule, counts, bucket, weight."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from rc1_lib.checks import at_most, equal
from rc1_lib.difficulty.features import measure
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge.budget import Spending, known_usd
from rc1_lib.judge.calls import is_made_up
from rc1_lib.judge.judge import check_judge, open_judge, open_store, score_unbilled
from rc1_lib.judge.prompt import judge_identity, read_spec
from rc1_lib.judge.results import Judged
from rc1_lib.judge.rubric import NAME as RUBRIC
from rc1_lib.judge.score_files import keep_unstable
from rc1_lib.records import Check, Message
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.reward.terms import add_old_score, add_reward, over_clarification_penalties
from rc1_lib.rows.chat import add_counts
from rc1_lib.run import Run
from rc1_lib.text.tokens import length

_KEPT = ("id", "task", "source_id", "messages", "needs_clarification", "solved", "lucky")


AsksJudge = Callable[..., Judged]
"""Scores rows like `judge_rows`: called with (run, rows) and its options."""


UNSTABLE_WEIGHT = 0.5
"""Weight of a dialogue on which the judge's samples disagree; a dialogue without a score does not count."""


def dimensions(run: Run) -> tuple[str, ...]:
    """Return the dimensions that the calibrated reward can weigh: the judge's, then the rules.

    Raises:
        ConfigError: when the baseline reward weighs something that the judge does not grade.
    """
    graded = tuple(read_spec(run).dimensions)
    unknown = set(run.config.reward.old_weights) - set(graded)
    if unknown:
        raise ConfigError(
            f"reward.old_weights weighs {', '.join(sorted(unknown))}, but the judge's instructions "
            f"'{run.config.judge.spec}' grade {', '.join(graded)}"
        )
    clash = set(RULES) & set(graded)
    if clash:
        raise ConfigError(
            f"the judge's instructions '{run.config.judge.spec}' grade {', '.join(sorted(clash))}, which is a rule's "
            f"name; rename the dimension"
        )
    return (*graded, *RULES)


def judge_rows(run: Run, rows: pl.DataFrame, *, store: str | None = None, spending: Spending | None = None) -> Judged:
    """Score rows of the pool's schema with the run's judge, and add everything computed by rule.

    Rows on which its samples disagree are listed (`rc1_lib.judge.score_files`).

    Args:
        store: path of a separate store, for dialogues that the preflight's gates must not see among their own. The
            local rubric then stores nothing.
        spending: what several scorings that share one budget have spent; None gives this one the whole budget.

    Returns:
        The scores, with other rows: `id, task, source_id, bucket, needs_clarification, solved, lucky`, the counts
        `turns, tool_hops, clarifications, answer_length`, every dimension (null if it has no score), `scored, reason,
        unstable, replayed, models`, and the row's `weight`.

    Raises:
        RC1Error: when the judge cannot be asked, stopped early or scored nothing; what was paid for is kept.
    """
    names = dimensions(run)
    check_judge(run)
    judged = _scored(run, rows["messages"].to_list(), store, spending)
    if judged.stopped:
        raise RC1Error(f"the judge '{run.config.judge.provider}' stopped: {judged.stopped}. What was paid for is kept")
    if rows.height and not judged.coverage:
        raise RC1Error(
            f"the judge '{run.config.judge.provider}' scored none of {rows.height} dialogues in {judged.calls} calls, "
            f"so there is nothing to compare. Unscored, {judged.why_unscored}"
        )
    keep_unstable(run.workspace, rows["id"].to_list(), judged, judge_identity(run))
    graded = [name for name in names if name not in RULES]
    scores = judged.rows.select("scored", "reason", "unstable", "replayed", "models", *graded)
    rules = add_rules(rows.select("messages"), tuple(RULES)).drop("messages")
    frame = measured_rows(rows).hstack(scores).hstack(rules)
    unstable = pl.when("unstable").then(UNSTABLE_WEIGHT).otherwise(1.0)
    return replace(judged, rows=frame.with_columns(weight=pl.when("scored").then(unstable).otherwise(0.0)))


def scoring(run: Run, judged: Judged) -> dict[str, Any]:
    """Summarize `judge_rows` for a report: which judge, how many rows are scored, and which have no score."""
    rows = judged.rows
    return {
        "judge": judge_identity(run),
        "models": list(judged.models),
        "rows": rows.height,
        "coverage": judged.coverage,
        "unscored": rows.filter(~pl.col("scored")).select("id", "reason").to_dicts(),
        "unstable": rows.filter("unstable")["id"].to_list(),
        "calls": float(judged.calls),
        "replayed": float(rows["replayed"].sum()),
        "usd": known_usd(run.config.judge, judged.usd, judged.calls),
    }


def measured_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute what is known about rows without a judge: outcome, counts, length of the answer and bucket.

    Args:
        rows: of the pool's schema.

    Returns:
        One line per row: `id, task, source_id, needs_clarification, solved, lucky`, the counts `turns, tool_hops,
        clarifications, answer_length` (words and punctuation marks of the assistant's last message; 0 without one),
        and `bucket`.
    """
    buckets = measure(rows).select("id", "bucket")
    message = pl.element()
    said = message.filter(message.struct.field("role") == "assistant").struct.field("content")
    last = pl.col("messages").list.eval(said).list.last().fill_null("")
    counted = add_counts(rows.select(_KEPT, answer_length=last)).drop("messages")
    counted = counted.with_columns(answer_length=length("answer_length"))
    return counted.join(buckets, on="id", how="left", maintain_order="left")


def _scored(run: Run, dialogues: list[list[Message]], apart: str | None, spending: Spending | None) -> Judged:
    config = run.config
    if apart is not None and config.judge.provider == RUBRIC:
        return score_unbilled(dialogues, config.judge, read_spec(run), config.gates.stability.max_variance)
    with open_store(run, apart) as store:
        return replace(open_judge(run, store), spending=spending).score(dialogues)


def with_reward(run: Run, frame: pl.DataFrame, weights: Mapping[str, float]) -> pl.DataFrame:
    """Add the old score and the new reward, including every term."""
    config = run.config
    return add_reward(
        add_old_score(frame, config.reward.old_weights),
        weights,
        alpha=config.overclar.alpha,
        cap=config.overclar.cap,
        beta=config.difficulty_beta,
        use_penalty=config.use_overclar_penalty,
    )


def with_outcome(run: Run, frame: pl.DataFrame) -> pl.DataFrame:
    """Add `main`, the training reward for the verified outcome, and `penalty`, like `with_reward`."""
    config, penalty = run.config, pl.lit(0.0)
    if config.use_overclar_penalty:
        asked, needs = pl.col("clarifications"), pl.col("needs_clarification")
        penalty = over_clarification_penalties(asked, needs, alpha=config.overclar.alpha, cap=config.overclar.cap)
    return frame.with_columns(main=config.training.reward.success * pl.col("solved"), penalty=penalty)


def judge_checks(run: Run, models: Collection[str]) -> tuple[Check, ...]:
    """Check that one model version answered, and in profile `prod` that it is a real one."""
    versions = at_most(
        "model versions", len(models), 1,
        "their scores are not on one scale: set judge.model to a fixed version, and score again",
    )  # fmt: skip
    return (versions, *real_checks(run, list(models)))


def real_checks(run: Run, models: object) -> tuple[Check, ...]:
    """Return a failed check in profile `prod` unless these are model versions, none of which makes its scores up."""
    is_real = isinstance(models, list) and not any(is_made_up(str(model)) for model in models)
    if run.config.profile != "prod" or is_real:
        return ()
    return (equal("scores are made up", True, False, "profile prod takes a real judge's only: use a fresh workspace"),)


def reported_models(report: Mapping[str, Any] | None) -> object:
    """Return the model versions that a report names; None if it names none, which does not count as real."""
    scoring = (report or {}).get("scoring")
    return scoring.get("models") if isinstance(scoring, Mapping) else None
