"""Results of scoring, of one sample and of a run: medians and variances by dialogue, or why there are none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import RC1Error
from rc1_lib.judge.calls import AttemptOutcome, Reply
from rc1_lib.judge.limiter import RecentRates
from rc1_lib.judge.prompt import JudgeSpec
from rc1_lib.numbers.sums import sum_in_order
from rc1_lib.records import Message

MIN_COVERAGE = 0.98
"""Smallest share of dialogues or episodes with a score, wherever scores decide something: what is missing is seldom
missing at random, and two scores of a hundred can move a mean by 0.02."""
_TWO_MODELS = "its samples come from two versions of the model, which are not on one scale; fix judge.model"
_NO_TRAFFIC = RecentRates()
SCORE_SCHEMA: dict[str, type[pl.DataType]] = {
    "dialogue": pl.String,
    "sample": pl.Int64,
    "dimension": pl.String,
    "score": pl.Float64,
}
"""Scores in long form: one row per score; a sample without a score has no row, or a null."""
NOT_ASKED = "not asked: the run ended before"
_NOT_REPEATED = (AttemptOutcome.REFUSED.value, AttemptOutcome.TRUNCATED.value, AttemptOutcome.UNREADABLE.value)
"""Outcomes that stay in the store: running the command again does not ask again."""
_REPLAY = ". Running again keeps refused, truncated and unreadable replies; `rc1 scorecache replay-bad` asks again"


class JudgeStoppedError(RC1Error):
    """The judge ended before it scored every dialogue, for example because its budget is used up."""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One requested sample of one dialogue; `key` hashes everything that is asked, `dialogue` is its SHA-256."""

    key: str
    dialogue: str
    messages: Sequence[Message]
    sample: int


@dataclass(frozen=True, slots=True)
class SampleResult:
    """The result for one requested sample: scores, or the reason why there are none.

    Attributes:
        scores: by dimension; None without valid scores.
        outcome: how the last attempt ended.
        reason: why there are no scores, in words; empty if there are.
        model: the model version that answered; empty without an answer.
        text: the reply's text.
    """

    scores: dict[str, float] | None
    outcome: AttemptOutcome
    reason: str
    model: str
    text: str = ""

    @classmethod
    def of(cls, reply: Reply) -> SampleResult:
        """Return the result of a stored reply."""
        outcome = reply.outcome if reply.scores is None else AttemptOutcome.HIT
        return cls(reply.scores, outcome, reply.detail, reply.model, reply.text)


@dataclass(frozen=True, slots=True)
class Judged:
    """The scores of a run.

    Attributes:
        rows: one row per dialogue, in the order asked: `dialogue` (SHA-256), `scored`, `reason` (empty if scored),
            `samples` (number of scores), `replayed` (number from the store), `models`, `unstable`, `straddles`
            (dimensions whose samples lie on both sides of `judge.verdict_at`; `overall` for their mean), and for each
            dimension its median under its own name and `{dimension}_variance`; null if unscored.
        replies: one row per sample: `dialogue, sample, outcome, reason, model, text`, and a column per dimension.
        run_id: the run's id in the usage log.
        stopped: why the run ended early; empty if it did not.
        usd: cost in USD: the known cost, plus the most that attempts of unknown cost can have cost.
        traffic: figures of the last minute.
    """

    rows: pl.DataFrame
    replies: pl.DataFrame
    run_id: str
    stopped: str = ""
    usd: float = 0.0
    calls: int = 0
    traffic: RecentRates = _NO_TRAFFIC

    @property
    def coverage(self) -> float:
        """Share of the dialogues that are scored; 0 without dialogues."""
        return int(self.rows["scored"].sum()) / len(self.rows) if len(self.rows) else 0.0

    @property
    def models(self) -> tuple[str, ...]:
        """The model versions that answered."""
        return tuple(self.rows["models"].explode().drop_nulls().unique().sort())

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Reasons why dialogues are unscored, with counts, most frequent first."""
        return Counter(self.rows.filter(~pl.col("scored"))["reason"].to_list()).most_common()

    @property
    def why_unscored(self) -> str:
        """The three most frequent of the `reasons`, in words; empty if all dialogues are scored."""
        return "; ".join(f"{count}: {reason}" for reason, count in self.reasons[:3])

    def require(self, min_coverage: float = MIN_COVERAGE) -> pl.DataFrame:
        """Return the rows if enough of them are scored to rely on.

        Raises:
            JudgeStoppedError: if the run ended early.
            RC1Error: if the share scored is below `min_coverage`.
        """
        if self.stopped:
            raise JudgeStoppedError(f"the judge stopped: {self.stopped}")
        if self.coverage < min_coverage:
            raise RC1Error(
                f"the judge scored {self.coverage:.1%} of {len(self.rows)} dialogues, expected at least "
                f"{min_coverage:.0%}; a mean over the rest would mislead. Unscored: {self.why_unscored}"
                + (_REPLAY if self.replies["outcome"].is_in(_NOT_REPEATED).any() else "")
            )
        return self.rows

    def unstable(self) -> list[dict[str, Any]]:
        """Return the unstable dialogues, each with all its replies."""
        names = self.rows.filter(pl.col("unstable")).unique("dialogue", maintain_order=True)
        replies = self.replies.filter(pl.col("dialogue").is_in(names["dialogue"].implode()))
        grouped = replies.partition_by("dialogue", as_dict=True, include_key=False)
        return [{**row, "replies": grouped[(row["dialogue"],)].to_dicts()} for row in names.iter_rows(named=True)]


def tables(
    names: Sequence[str],
    wanted: Sequence[SampleRequest],
    got: Mapping[str, SampleResult],
    config: JudgeConfig,
    spec: JudgeSpec,
    max_variance: float,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Build `rows` and `replies` of `Judged`; a dialogue is scored only if all K samples are."""
    replies = _replies(wanted, got, spec)
    rows = _rows(replies, config, spec, max_variance)
    order = pl.DataFrame({"dialogue": list(names)}, schema={"dialogue": pl.String})
    return (
        order.join(rows, on="dialogue", how="left", maintain_order="left"),
        replies.select("dialogue", "sample", "outcome", "reason", "model", "text", *spec.dimensions),
    )


def _replies(wanted: Sequence[SampleRequest], got: Mapping[str, SampleResult], spec: JudgeSpec) -> pl.DataFrame:
    missing = SampleResult(None, AttemptOutcome.CANCELLED, NOT_ASKED, "")
    records = [(request, got.get(request.key, missing)) for request in wanted]
    columns: dict[str, list[Any]] = {
        "dialogue": [request.dialogue for request, _ in records],
        "sample": [request.sample for request, _ in records],
        "outcome": [found.outcome.value for _, found in records],
        "reason": [found.reason for _, found in records],
        "model": [found.model for _, found in records],
        "text": [found.text for _, found in records],
    }
    schema: dict[str, Any] = dict.fromkeys(columns, pl.String) | {"sample": pl.Int64}
    for name in spec.dimensions:
        columns[name] = [None if found.scores is None else found.scores[name] for _, found in records]
        schema[name] = pl.Float64
    return pl.DataFrame(columns, schema=schema)


def _rows(replies: pl.DataFrame, config: JudgeConfig, spec: JudgeSpec, max_variance: float) -> pl.DataFrame:
    """Aggregate the replies to one row per dialogue."""
    dimensions = list(spec.dimensions)
    has_scores = pl.col(dimensions[0]).is_not_null()
    at = config.verdict_at
    means = replies.with_columns(overall=sum_in_order(dimensions) / len(dimensions))
    sides = [(pl.col(name).min() < at) & (pl.col(name).max() >= at) for name in (*dimensions, "overall")]
    rows = means.group_by("dialogue", maintain_order=True).agg(
        samples=has_scores.sum().cast(pl.Int64),
        replayed=(pl.col("outcome") == AttemptOutcome.HIT.value).sum().cast(pl.Int64),
        reason=pl.col("reason").filter(~has_scores).first().fill_null(""),
        models=pl.col("model").filter(has_scores).unique().sort(),
        straddles=pl.concat_list(
            [pl.when(side).then(pl.lit(name)) for side, name in zip(sides, (*dimensions, "overall"), strict=True)]
        ).list.drop_nulls(),
    )
    one_model = pl.col("models").list.len() <= 1
    rows = rows.with_columns(
        scored=(pl.col("samples") == config.samples) & one_model,
        reason=pl.when(~one_model).then(pl.lit(_TWO_MODELS)).otherwise("reason"),
    )
    long = replies.unpivot(dimensions, index=["dialogue", "sample"], variable_name="dimension", value_name="score")
    spread = medians_and_variances(long.select(list(SCORE_SCHEMA)))
    for statistic, suffix in (("median", ""), ("variance", "_variance")):
        wide = spread.pivot("dimension", index="dialogue", values=statistic)
        given = [name for name in dimensions if name in wide.columns]
        wide = wide.select("dialogue", *(pl.col(name).alias(f"{name}{suffix}") for name in given))
        rows = rows.join(wide, on="dialogue", how="left", maintain_order="left")
        absent = [pl.lit(None, pl.Float64).alias(f"{name}{suffix}") for name in dimensions if name not in given]
        rows = rows.with_columns(absent)
    numbers = [*dimensions, *(f"{name}_variance" for name in dimensions)]
    variances = [pl.col(f"{name}_variance") for name in dimensions]
    return rows.with_columns(
        # A dialogue that lacks a sample has no numbers at all.
        *(pl.when("scored").then(pl.col(name)).alias(name) for name in numbers),
        unstable=pl.col("scored") & (pl.max_horizontal(variances) > max_variance).fill_null(False),
        reason=pl.when("scored").then(pl.lit("")).otherwise("reason"),
    )


def medians_and_variances(scores: pl.DataFrame) -> pl.DataFrame:
    """Compute median and unbiased variance of each dialogue's samples, by dimension.

    Args:
        scores: columns `dialogue`, `dimension`, `score`; nulls are ignored.

    Returns:
        Columns `dialogue`, `dimension`, `samples` (number of scores), `median`, `variance`, in order of first
        appearance. The variance of a single sample is null. A NaN among the scores makes both NaN.
    """
    score = pl.col("score")
    poisoned = score.is_nan().any()
    return (
        scores.filter(score.is_not_null())
        .group_by("dialogue", "dimension", maintain_order=True)
        .agg(
            samples=pl.len().cast(pl.Int64),
            median=pl.when(poisoned).then(math.nan).otherwise(score.median()),
            variance=pl.when(pl.len() < 2).then(None).when(poisoned).then(math.nan).otherwise(score.var(ddof=1)),
        )
    )
