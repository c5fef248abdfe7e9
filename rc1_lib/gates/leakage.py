"""Leakage: no row of the pool repeats a question of the shadow set, in whatever template it is wrapped.

The measure is containment: the share of a shadow question's word n-grams that stand anywhere in the row. Unlike a
similarity of whole texts it does not fall when the leaked question is embedded in a long dialogue. n-grams of template
text are left out on both sides, so that rows which share only a template share nothing. Of a word problem the story
belongs to the question: "How much did she earn?" alone says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rc1_lib.checks import at_least, at_most, equal, info, offenders, parts
from rc1_lib.ngrams import containment, distinctive_ngrams
from rc1_lib.records import GateResult
from rc1_lib.rows.frame import with_texts
from rc1_lib.task_specs import task_names, task_spec
from rc1_lib.thresholds import LeakageGate

_ADVICE = "drop the rows listed, or rebuild: the builder holds shadow questions back, so a leak came from elsewhere"


_SEARCHED = (
    "everything",
    "question",
    pl.col("support").list.join("\n"),
    pl.col("passages").list.eval(pl.element().struct.field("text")).list.join("\n"),
)
"""All that training could see of a row: every message and call, the question, its evidence, and what `wiki` returns."""


def leakage_gate(
    rows: pl.DataFrame,
    shadow: pl.DataFrame,
    thresholds: LeakageGate,
    template_texts: Sequence[str],
    by_task: Sequence[str],
) -> GateResult:
    """Judge the highest containment of any shadow question in any row, and that no source question is in both."""
    texts = with_texts(rows)
    story = pl.col("support").list.join("\n") + "\n"
    is_story = pl.col("task").is_in([task for task in task_names() if task_spec(task).word_problem])
    held = shadow.select(pl.concat_str(pl.when(is_story).then(story).otherwise(pl.lit("")), "question")).to_series()
    ignored = pl.Series(list(template_texts), dtype=pl.String)
    searched = texts.select(pl.concat_str(_SEARCHED, separator="\n", ignore_nulls=True)).to_series()
    pairs = containment(searched, held, thresholds.ngram, ignored)
    named = pairs.with_columns(
        id=rows["id"].gather(pairs["row"]),
        task=rows["task"].gather(pairs["row"]),
        shadow_id=shadow["id"].gather(pairs["held"]),
    )
    leaks = named.filter(pl.col("similarity") > thresholds.max_similarity).sort("similarity", descending=True)
    checkable = distinctive_ngrams(held, thresholds.ngram, ignored)["row"].n_unique()
    same_source = rows.join(shadow.select("source", "source_id").unique(), on=["source", "source_id"], how="semi")
    checks = [
        equal("rows from a shadow question", same_source.height, 0, _ADVICE),
        equal(
            "shadow questions too short to check", shadow.height - checkable, 0,
            f"without template text they hold no {thresholds.ngram} tokens in a row: lower gates.leakage.ngram",
        ),
        at_least("rows compared", rows.height, 1, "there are no rows to check"),
        at_least("shadow questions compared", checkable, 1, "there is no shadow question to check against"),
        info("rows sharing an n-gram with the shadow set", named["row"].n_unique()),
    ]  # fmt: skip
    for suffix, part in parts(named, by_task):
        highest = part["similarity"].max()
        value = float(highest) if isinstance(highest, float) else 0.0
        checks.append(at_most(f"highest similarity{suffix}", value, thresholds.max_similarity, _ADVICE))
    listed = offenders(leaks.select("id", "task", "shadow_id", "similarity"), "leak")
    listed += offenders(same_source.select("id", "task", "source_id"), "same source question")
    return GateResult("leakage", tuple(checks), offenders=listed)
