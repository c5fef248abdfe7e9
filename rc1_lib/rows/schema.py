"""Schemas of rows, metrics and the balanced pool, checked with pandera; errors name the first fault.

Import it where rows are checked: pandera takes most of a second, and most commands check none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandera.polars as pa
import polars as pl
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors

from rc1_lib.errors import RowError
from rc1_lib.records import BUCKETS
from rc1_lib.rows.chat import ARGUMENT_OF, ASK
from rc1_lib.runtime.batches import in_parts
from rc1_lib.task_specs import task_names

_DataType = pl.DataType | type[pl.DataType]


def _column(dtype: _DataType, *checks: pa.Check, unique: bool = False) -> pa.Column:
    """Return a column without nulls."""
    return pa.Column(dtype, list(checks), nullable=False, unique=unique)


def _text(*, unique: bool = False) -> pa.Column:
    return _column(pl.String, pa.Check.str_length(min_value=1), unique=unique)


def _one_of(texts: Sequence[str]) -> pa.Column:
    return _column(pl.String, pa.Check.isin(list(texts)))


def _at_least(least: int) -> pa.Column:
    return _column(pl.Int64, pa.Check.ge(least))


def _between(least: float, most: float) -> pa.Column:
    return _column(pl.Float64, pa.Check.ge(least), pa.Check.le(most))


_RULES = {
    "has support": "names no supporting sentence",
    "opens": "the dialogue must open with a system and a user message",
    "roles": "a message's role must be system, user, assistant or tool",
    "contents": "every message needs a text",
    "calls": "every call needs one of the tools wiki(title), calc(expression), ask_user(question), and its argument",
    "asks": "'asked' must be the number of ask_user calls",
    "ends": "the last message must be the assistant's and hold 'final'",
    "solved or lucky": "a row cannot be both solved and lucky",
    "posed lists": "'posed' needs 'quoted' and 'listed', lists of texts that may be empty",
    "pages": "every page in 'passages' needs a title and a text",
    "slot named": "a row with 'user_replies' that needs a clarification needs a 'slot' with 'value' and 'wanted'",
    "replies": "'user_replies' needs 'gives' exactly where a clarification is needed, and 'otherwise', or is left out",
}
"""Rule that a whole dialogue must satisfy -> message if it does not."""


def _rows() -> pa.DataFrameSchema:
    """Return the schema of rows. It is built at each call, since tasks may be registered at any time."""
    columns = {
        "id": _text(unique=True),
        "task": _one_of(task_names()),
        "split": _one_of(("pool", "shadow")),
        "source": _text(),
        "source_id": _text(),
        "lang": _one_of(("en", "zh")),
        "template_id": _text(),
        "role": _text(),
        "style": _text(),
        "question": _text(),
        "posed_ask": _text(),
        "answer": _text(),
        "needs_clarification": _column(pl.Boolean),
        "asked": _at_least(0),
        "final": _column(pl.String),
        "solved": _column(pl.Boolean),
        "lucky": _column(pl.Boolean),
    }
    return pa.DataFrameSchema({**columns, **{name: _column(pl.Boolean, pa.Check.eq(True)) for name in _RULES}})


def _metrics() -> pa.DataFrameSchema:
    """Return the schema of difficulty metrics."""
    return pa.DataFrameSchema(
        {
            "id": _text(unique=True),
            "task": _one_of(task_names()),
            "len_tokens": _at_least(1),
            "turns": _at_least(1),
            "tool_hops": _at_least(0),
            "entities": _at_least(0),
            "ops_numeric": _at_least(0),
            "connector_density": _between(0, 100),
            "coref_pronouns": _at_least(0),
            "clue_overlap": _between(0, 1),
            "ambiguity_flags": _column(pl.List(pl.String)),
            "needs_clarification": _column(pl.Boolean),
            "bucket": _one_of(BUCKETS),
        }
    )


_IN_WORDS = {
    "field_uniqueness": "must not hold a value twice",
    "not_nullable": "must not be missing",
    "str_length(1, None)": "must not be empty",
    "str_length(min_value=1)": "must not be empty",
}


def check_rows(frame: pl.DataFrame, path: Path, split: str | None = None) -> pl.DataFrame:
    """Return `frame` if it holds valid rows, all of the given split if there is one.

    Raises:
        RowError: naming the file, the column, the first row at fault and what was expected.
    """
    schema = _rows()
    _validate(schema, in_parts(frame, lambda part: _with_rules(part).select(*schema.columns)), path)
    strays = frame.filter(pl.col("split") != split) if split else frame.head(0)
    if strays.height:
        raise RowError(
            f"{path}: row '{strays['id'][0]}' is of split '{strays['split'][0]}', expected only rows of split '{split}'"
        )
    return frame


def _with_rules(frame: pl.DataFrame) -> pl.DataFrame:
    """Add one Boolean column for each of `_RULES`."""
    message = pl.element()
    roles = pl.col("messages").list.eval(message.struct.field("role"))
    contents = pl.col("messages").list.eval(message.struct.field("content"))
    last = contents.list.last().fill_null("")
    calls = _calls_by_row(frame)
    empty = message.struct.field("tool_calls").list.eval(pl.element().struct.field("function").is_null()).list.any()
    return frame.join(calls, on="id", how="left", maintain_order="left").with_columns(
        (pl.col("support").list.len().fill_null(0) > 0).alias("has support"),
        ((roles.list.get(0, null_on_oob=True) == "system") & (roles.list.get(1, null_on_oob=True) == "user"))
        .fill_null(False)
        .alias("opens"),
        roles.list.eval(pl.element().is_in(["system", "user", "assistant", "tool"]).fill_null(False))
        .list.all()
        .fill_null(False)
        .alias("roles"),
        contents.list.eval(pl.element().is_not_null()).list.all().fill_null(False).alias("contents"),
        (pl.col("sound").fill_null(True) & ~pl.col("messages").list.eval(empty).list.any().fill_null(False)).alias(
            "calls"
        ),
        (pl.col("questions").fill_null(0) == pl.col("asked")).fill_null(False).alias("asks"),
        (
            (roles.list.last() == "assistant")
            & (pl.col("final").str.len_chars() > 0)
            # Several contradicting answers are joined into one `final` (rc1_lib/answer_rules/message.py).
            & (last.str.contains(pl.col("final"), literal=True) | _joined(last))
        )
        .fill_null(False)
        .alias("ends"),
        (~(pl.col("solved") & pl.col("lucky"))).fill_null(False).alias("solved or lucky"),
        _posed_lists().alias("posed lists"),
        _pages().alias("pages"),
        _slot().alias("slot named"),
        _replies().alias("replies"),
        posed_ask=pl.col("posed").struct.field("ask"),
    )


def _joined(last: pl.Expr) -> pl.Expr:
    """Return whether `final` joins several answers, and the last message contains the first and last of them."""
    answers = pl.col("final").str.split("; ").list
    ends = (last.str.contains(answer, literal=True) for answer in (answers.first(), answers.last()))
    return pl.all_horizontal(answers.len() > 1, *ends)


def _posed_lists() -> pl.Expr:
    """Return whether a row says which sentences and titles its message holds, even if none."""
    lists = pl.col("posed").struct.field("quoted", "listed").list
    return pl.all_horizontal(lists.eval(pl.element().is_not_null()).list.all()).fill_null(False)


def _pages() -> pl.Expr:
    """Return whether every page of a row has a title and a text."""
    parts = (pl.element().struct.field(name).str.len_chars().fill_null(0) > 0 for name in ("title", "text"))
    return pl.col("passages").list.eval(pl.all_horizontal(*parts)).list.all().fill_null(True)


def _slot() -> pl.Expr:
    """Return whether a playable row with missing information says what is missing."""
    slot = pl.col("slot").struct
    named = pl.all_horizontal(slot.field(name).str.len_chars().fill_null(0) > 0 for name in ("value", "wanted"))
    played = pl.col("user_replies").struct.field("otherwise").is_not_null()
    return named | ~(pl.col("needs_clarification").fill_null(False) & played)


def _replies() -> pl.Expr:
    """Return whether a row has its user's replies as needed, or none at all, as rows of an older form."""
    replies = pl.col("user_replies").struct
    gives, otherwise = replies.field("gives"), replies.field("otherwise")
    none = gives.is_null() & otherwise.is_null()
    given = pl.when("needs_clarification").then(gives.str.len_chars() > 0).otherwise(gives.is_null())
    return (none | (given & (otherwise.str.len_chars() > 0))).fill_null(False)


def _calls_by_row(frame: pl.DataFrame) -> pl.DataFrame:
    """Return for each id with tool calls whether all of them are valid (`sound`), and how many ask the user."""
    calls = pl.element().struct.field("tool_calls").explode().drop_nulls().struct.field("function")
    long = (
        frame.unique("id", keep="first")
        .select("id", call=pl.col("messages").list.eval(calls))
        .explode("call", empty_as_null=False)
        .drop_nulls("call")
        .unnest("call")
    )
    sound = pl.any_horizontal(
        (pl.col("name") == tool) & pl.col("arguments").str.json_path_match(f"$.{argument}").is_not_null()
        for tool, argument in ARGUMENT_OF.items()
    )
    return long.group_by("id").agg(
        sound=sound.fill_null(False).all(), questions=(pl.col("name") == ASK).sum().cast(pl.Int64)
    )


def check_metrics(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return `frame` if it holds valid difficulty metrics.

    Raises:
        RowError: naming the file, the column, the first row at fault and what was expected.
    """
    _validate(_metrics(), frame, path)
    return frame


def check_balanced(frame: pl.DataFrame, metrics: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return the balanced pool if each of its rows, which `check_rows` has accepted, has metrics.

    Raises:
        RowError: naming the file and the first row at fault.
    """
    unmeasured = frame.join(metrics, on="id", how="anti")
    if unmeasured.height:
        raise RowError(
            f"{path}: {unmeasured.height} rows have no difficulty metrics, first '{unmeasured['id'][0]}'; "
            f"run `rc1 difficulty-metrics` and `rc1 difficulty-bucketize` again"
        )
    return frame


def _validate(schema: pa.DataFrameSchema, frame: pl.DataFrame, path: Path) -> None:
    try:
        # Not what PANDERA_VALIDATION_ENABLED and PANDERA_VALIDATION_DEPTH say, or another user of pandera.
        with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
            schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        raise RowError(_explain(error, frame, path)) from None


def _explain(error: SchemaErrors, frame: pl.DataFrame, path: Path) -> str:
    cases = error.failure_cases
    first = cases.row(0, named=True)
    column, check = first.get("column") or first.get("failure_case"), first.get("check")
    index = first.get("index")
    where = f", line {index + 1}" if isinstance(index, int) and 0 <= index < frame.height else ""
    others = f" ({cases.height - 1} further faults)" if cases.height > 1 else ""
    if column in _RULES:
        return f"{path}{where}: {_RULES[column]}{others}"
    rule = _IN_WORDS.get(str(check), f"fails '{check}'")
    return f"{path}{where}: column '{column}' {rule}, found {first.get('failure_case')!r}{others}"
