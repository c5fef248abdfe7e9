"""Length: every row has from `min_len` to `max_len` tokens."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rc1_lib.checks import at_least, at_most, info, number, offenders, parts
from rc1_lib.config.thresholds import LengthGate
from rc1_lib.gates.spec import GateSpec
from rc1_lib.records import GateResult
from rc1_lib.rows.frame import texts_of
from rc1_lib.runtime.batches import in_parts
from rc1_lib.text.tokens import length

_TOKEN = 12
"""Maximum characters per token, averaged over a row. Text has four or five; with more, the estimate would take long
stretches for one word, or ignore them, which no model does."""


def length_gate(rows: pl.DataFrame, thresholds: LengthGate, by_task: Sequence[str]) -> GateResult:
    """Check the shortest and the longest row, in tokens of the whole dialogue (`rc1_lib.text.tokens.length`)."""
    lengths = in_parts(rows, _lengths)
    checks = []
    for suffix, part in parts(lengths, by_task):
        shortest, longest, median = part["tokens"].min(), part["tokens"].max(), part["tokens"].median()
        checks += [
            at_least(
                f"shortest{suffix}", number(shortest), thresholds.min_len,
                "drop the rows listed, or quote more evidence in their prompts (pool.recipes.*.overlap)",
            ),
            at_most(
                f"longest{suffix}", number(longest), thresholds.max_len,
                "cut long pages or drop the rows listed; check that the base model's context is longer than max_len",
            ),
            info(f"median{suffix}", number(median)),
        ]  # fmt: skip
    bad = lengths.filter((pl.col("tokens") < thresholds.min_len) | (pl.col("tokens") > thresholds.max_len))
    return GateResult("length", tuple(checks), offenders=offenders(bad, "length"))


def _lengths(rows: pl.DataFrame) -> pl.DataFrame:
    texts = rows.select("id", "task", texts_of(rows, "everything"))
    long = pl.col("everything").str.len_chars() // _TOKEN
    return texts.select("id", "task", tokens=pl.max_horizontal(length("everything"), long).cast(pl.Int64))


SPEC = GateSpec(
    "length", "is every row of a usable length", ("pool",),
    lambda e, _: length_gate(e.rows("pool"), e.run.config.gates.length, e.tasks),
)  # fmt: skip
