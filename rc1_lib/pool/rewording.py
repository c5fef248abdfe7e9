"""Word the same dialogues with another pack, as the reference for the divergence of wording.

Question, quoted evidence, titles, sums and answer stay the same and cancel out, so only the wording is compared. Two
samples of *different* questions would diverge even with the same wording.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson
import polars as pl

from rc1_lib.pool.dialogue import kind_of
from rc1_lib.pool.prompting import user_message
from rc1_lib.pool.templates import Pack, Template
from rc1_lib.records import Language, Task
from rc1_lib.rows.chat import ANSWER_MARK, ARGUMENT_OF


def reworded(rows: pl.DataFrame, pack: Pack) -> pl.Series:
    """Return each row's system, user and assistant text in the wording of `pack`.

    Args:
        rows: frame with the columns `ROW_COLUMNS`; give a sample, since rows are worded one by one.
        pack: the templates; those of a row's language and kind are used in turn.

    Returns:
        One text per row, in the rows' order.
    """
    own = pl.element().filter(pl.element().struct.field("role") == "assistant").struct
    call = own.field("tool_calls").list.first().struct.field("function").struct
    posed = pl.col("posed").struct
    read = rows.select(
        "task", "cue", "lang", "final",
        *(posed.field(name) for name in ("ask", "quoted", "listed", "reason")),
        tools=pl.col("messages").list.eval(call.field("name")),
        arguments=pl.col("messages").list.eval(call.field("arguments")),
    )  # fmt: skip
    columns = zip(*(column.to_list() for column in read), strict=True)
    texts = [_reword(_Wording(*values), pack, number) for number, values in enumerate(columns)]
    return pl.Series(texts, dtype=pl.String)


class _Wording(NamedTuple):
    """The parts of a row that get new words; `tools` holds the first tool of each assistant turn, None without one."""

    task: Task
    cue: bool
    lang: Language
    final: str
    ask: str
    quoted: list[str]
    listed: list[str]
    reason: str
    tools: list[str | None]
    arguments: list[str | None]


def _reword(row: _Wording, pack: Pack, number: int) -> str:
    templates = pack.select(kind_of(row.task, row.cue), row.lang)
    template = templates[number % len(templates)]
    turn = number // len(templates)
    lines = [template.system, user_message(template, row.quoted, row.listed, row.ask, row.lang)]
    for offset, (tool, arguments) in enumerate(zip(row.tools, row.arguments, strict=True)):
        lines.append(_assistant(tool, arguments, template, turn + offset, row))
    return "\n".join(lines)


def _assistant(tool: str | None, arguments: str | None, template: Template, turn: int, row: _Wording) -> str:
    if tool is None or arguments is None:
        phrases = [phrase for phrase in template.final if row.reason or "{reason}" not in phrase]
        words = phrases[turn % len(phrases)].format(reason=row.reason) if phrases else ""
        return f"{words} {ANSWER_MARK[row.lang]}{row.final}".strip()
    if tool == "ask_user":
        return ""
    argument = orjson.loads(arguments)[ARGUMENT_OF[tool]]
    phrases = list(template.steps[tool])
    return phrases[turn % len(phrases)].format(**{ARGUMENT_OF[tool]: argument})
