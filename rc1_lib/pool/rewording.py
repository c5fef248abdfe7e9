"""The same rows in the words of another pack: what the divergence of wording is measured against.

Question, evidence, titles and answer stay, so that they cancel out and what is left is the wording.
"""

from __future__ import annotations

import polars as pl

from rc1_lib.pool.templates import Pack, Template


def plain_wording(rows: pl.DataFrame, pack: Pack) -> pl.Series:
    """Each row's system, user and assistant text as `pack` would have worded it.

    Args:
        rows: columns of `ROW_COLUMNS` and `with_texts`.
        pack: its templates are used in turn, by language and kind.

    Returns:
        One text a row, in the rows' order.
    """
    kinds = {"gsm8k": "maths", "hotpotqa": "multihop", "strategyqa": "multihop"}
    kind = pl.when("cue").then(pl.lit("clarification")).otherwise(pl.col("task").replace_strict(kinds, default="maths"))
    numbered = rows.with_columns(kind=kind).with_row_index("place")
    pieces = []
    for (lang, of_kind), group in numbered.group_by("lang", "kind", maintain_order=True):
        templates = pack.select(str(of_kind), str(lang))
        turn = pl.int_range(pl.len()) % len(templates)
        for number, template in enumerate(templates):
            mine = group.filter(turn == number)
            pieces.append(mine.select("place", text=_worded(template)))
    return pl.concat(pieces).sort("place")["text"]


def _worded(template: Template) -> pl.Expr:
    """One row's text in the template's words, as an expression over the row's columns."""
    titles = pl.col("passages").list.eval(pl.element().struct.field("title")).list.join(", ")
    lines = [
        pl.lit(template.system),
        _filled(template.quote, "evidence", pl.col("evidence")),
        _filled(template.lookup, "titles", titles),
        _filled(template.user, "question", pl.col("question")),
        _filled(template.final[0], "reason", pl.lit("")),
        pl.lit("Answer: ") + pl.col("final"),
    ]
    return pl.concat_str(lines, separator="\n", ignore_nulls=True)


def _filled(phrase: str, slot: str, value: pl.Expr) -> pl.Expr:
    before, _, after = phrase.partition("{" + slot + "}")
    return pl.concat_str([pl.lit(before), value, pl.lit(after)], ignore_nulls=True)
