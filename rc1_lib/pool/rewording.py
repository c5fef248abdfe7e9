"""The same dialogues in the words of another pack: what the divergence of wording is measured against.

Question, quoted evidence, titles, sums and answer stay as they are, so that they cancel out and what is left is the
wording. Two samples of *different* questions in the same words would already stand far apart.
"""

from __future__ import annotations

from typing import cast

import orjson
import polars as pl

from rc1_lib.pool.dialogue import kind_of
from rc1_lib.pool.prompting import user_message
from rc1_lib.pool.templates import Pack, Template
from rc1_lib.records import Message, Row
from rc1_lib.rows.conventions import ANSWER_MARK, ARGUMENT_OF

_READ = ("task", "cue", "lang", "posed", "messages", "final")


def reworded(rows: pl.DataFrame, pack: Pack) -> pl.Series:
    """Each row's system, user and assistant text as `pack` words it.

    Args:
        rows: columns of `ROW_COLUMNS`; a sample, since rows are worded one by one.
        pack: its templates and their phrases are used in turn, by language and kind.

    Returns:
        One text a row, in the rows' order.
    """
    read = rows.select(_READ)
    texts = [_reword(cast("Row", row), pack, number) for number, row in enumerate(read.iter_rows(named=True))]
    return pl.Series(texts, dtype=pl.String)


def _reword(row: Row, pack: Pack, number: int) -> str:
    templates = pack.select(kind_of(row["task"], row["cue"]), row["lang"])
    template = templates[number % len(templates)]
    turn = number // len(templates)
    posed = row["posed"]
    lines = [template.system, user_message(template, posed["quoted"], posed["listed"], posed["ask"], row["lang"])]
    for message in row["messages"]:
        if message["role"] == "assistant":
            lines.append(_assistant(message, template, turn, row))
            turn += 1
    return "\n".join(lines)


def _assistant(message: Message, template: Template, turn: int, row: Row) -> str:
    calls = message.get("tool_calls")
    if not calls:
        reason = row["posed"]["reason"]
        phrases = [phrase for phrase in template.final if reason or "{reason}" not in phrase]
        words = phrases[turn % len(phrases)].format(reason=reason) if phrases else ""
        return f"{words} {ANSWER_MARK[row['lang']]}{row['final']}".strip()
    call = calls[0]["function"]
    if call["name"] == "ask_user":
        return ""
    argument = orjson.loads(call["arguments"])[ARGUMENT_OF[call["name"]]]
    phrases = list(template.steps[call["name"]])
    return phrases[turn % len(phrases)].format(**{ARGUMENT_OF[call["name"]]: argument})
