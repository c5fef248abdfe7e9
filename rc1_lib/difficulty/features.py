"""The difficulty features of every row, computed on columns."""

from __future__ import annotations

import polars as pl

from rc1_lib.config.data import Difficulty
from rc1_lib.difficulty import lexicon
from rc1_lib.difficulty.buckets import vote
from rc1_lib.rows.frame import METRIC_TYPES, with_texts
from rc1_lib.runtime.batches import in_parts
from rc1_lib.text.ngrams import jaccard_by_row
from rc1_lib.text.tokens import TOKEN_PATTERN, length

MEASURED = ("id", "task", "messages", "support", "needs_clarification")
"""The columns of a row that `measure` reads."""


def measure(rows: pl.DataFrame, config: Difficulty) -> pl.DataFrame:
    """Features and bucket of every row.

    Args:
        rows: at least the columns `MEASURED`.
        config: the bounds that decide the buckets.

    Returns:
        One line per row, in the rows' order, columns `METRIC_TYPES`. `len_tokens` estimates the tokens of the whole
        dialogue; `entities` counts distinct names in user and tool text; `ops_numeric` counts operators given to `calc`
        and words of comparison and arithmetic in the prompt; `connector_density` is connectors per 100 words of user
        and assistant text; `clue_overlap` is the word 3-gram Jaccard of the prompt against the supporting text.
    """
    return in_parts(rows, lambda part: _measured(part, config))


def _measured(rows: pl.DataFrame, config: Difficulty) -> pl.DataFrame:
    texts = with_texts(rows)
    measured = texts.with_columns(
        len_tokens=length("everything").cast(pl.Int64),
        entities=_distinct_entities("material"),
        ops_numeric=_operators("expressions") + _count(lexicon.OPERATION_WORDS, "prompt"),
        connector_density=_density(lexicon.CONNECTORS, "talk"),
        coref_pronouns=_count(lexicon.PRONOUNS, "prompt"),
        clue_overlap=jaccard_by_row(texts["prompt"], texts["evidence"], 3),
        ambiguity_flags=_flags(),
    ).with_columns(pl.col("ops_numeric").cast(pl.Int64))
    return measured.with_columns(bucket=vote(config)).select(list(METRIC_TYPES))


def _count(patterns: tuple[str, ...], column: str) -> pl.Expr:
    text = pl.col(column).fill_null("")
    return pl.sum_horizontal([text.str.count_matches(pattern) for pattern in patterns]).cast(pl.Int64)


def _operators(column: str) -> pl.Expr:
    # The expressions are JSON: keys and quotes contain no operators, and a leading minus is a sign, not an operation.
    text = pl.col(column).fill_null("").str.replace_all(r"([\"(])\s*-", "$1")
    return text.str.count_matches(lexicon.OPERATORS).cast(pl.Int64)


def _density(patterns: tuple[str, ...], column: str) -> pl.Expr:
    words = pl.col(column).fill_null("").str.count_matches(TOKEN_PATTERN)
    return pl.when(words > 0).then(100.0 * _count(patterns, column) / words).otherwise(0.0).clip(0.0, 100.0)


def _distinct_entities(column: str) -> pl.Expr:
    text = pl.col(column).fill_null("")
    inside = text.str.replace_all(lexicon.SENTENCE_START, ". ")
    english = inside.str.extract_all(lexicon.ENTITY_EN)
    chinese = text.str.extract_all(lexicon.ENTITY_ZH)
    return pl.concat_list(english, chinese).list.n_unique().cast(pl.Int64)


def _flags() -> pl.Expr:
    """The names that apply among `under-specified`, `vague-reference`, `vague-time`, `multi-entity`."""
    prompt = pl.col("prompt").fill_null("")
    rules = {
        "under-specified": pl.col("needs_clarification"),
        "vague-reference": prompt.str.contains(lexicon.VAGUE_REFERENCE),
        "vague-time": prompt.str.contains(lexicon.VAGUE_TIME),
        "multi-entity": prompt.str.count_matches(lexicon.ENTITY_EN) >= 3,
    }
    named = [pl.when(rule).then(pl.lit(name)).otherwise(None) for name, rule in rules.items()]
    return pl.concat_list(named).list.drop_nulls()
