"""What rows, metrics and the balanced pool must look like, as pandera schemas."""

from __future__ import annotations

from pathlib import Path

import pandera.polars as pa
import polars as pl
from pandera.errors import SchemaErrors

from rc1_lib.errors import RowError
from rc1_lib.records import BUCKETS, TASKS


def _text(*, unique: bool = False, among: tuple[str, ...] | None = None) -> pa.Column:
    checks = [pa.Check.isin(list(among))] if among else [pa.Check.str_length(min_value=1)]
    return pa.Column(pl.String, checks, nullable=False, unique=unique)


def _count() -> pa.Column:
    return pa.Column(pl.Int64, pa.Check.ge(0), nullable=False)


ROWS = pa.DataFrameSchema(
    {
        "id": _text(unique=True),
        "task": _text(among=TASKS),
        "split": _text(among=("pool", "shadow")),
        "source": _text(),
        "source_id": _text(),
        "lang": _text(among=("en", "zh")),
        "template_id": _text(),
        "role": _text(),
        "style": _text(),
        "question": _text(),
        "posed_ask": _text(),
        "answer": _text(),
        "needs_clarification": pa.Column(pl.Boolean, nullable=False),
        "asked": _count(),
        "final": pa.Column(pl.String, nullable=False),
        "solved": pa.Column(pl.Boolean, nullable=False),
        "lucky": pa.Column(pl.Boolean, nullable=False),
        "n_messages": pa.Column(pl.UInt32, pa.Check.ge(3), nullable=False),
        "opens_with_system": pa.Column(pl.Boolean, pa.Check.eq(True), nullable=False),
        "ends_with_answer": pa.Column(pl.Boolean, pa.Check.eq(True), nullable=False),
        "n_support": pa.Column(pl.UInt32, pa.Check.ge(1), nullable=False),
    }
)

METRICS = pa.DataFrameSchema(
    {
        "id": _text(unique=True),
        "task": _text(among=TASKS),
        "len_tokens": pa.Column(pl.Int64, pa.Check.gt(0), nullable=False),
        "turns": pa.Column(pl.Int64, pa.Check.gt(0), nullable=False),
        "tool_hops": _count(),
        "entities": _count(),
        "ops_numeric": _count(),
        "connector_density": pa.Column(pl.Float64, pa.Check.in_range(0, 100), nullable=False),
        "coref_pronouns": _count(),
        "clue_overlap": pa.Column(pl.Float64, pa.Check.in_range(0, 1), nullable=False),
        "ambiguity_flags": pa.Column(pl.List(pl.String), nullable=False),
        "needs_clarification": pa.Column(pl.Boolean, nullable=False),
        "bucket": _text(among=BUCKETS),
    }
)


_IN_WORDS = {
    "field_uniqueness": "must not hold a value twice",
    "not_nullable": "must not be missing",
    "str_length(1, None)": "must not be empty",
    "str_length(min_value=1)": "must not be empty",
}


def check_rows(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return `frame` if it holds rows.

    Raises:
        RowError: naming the file, the column, the first row at fault and what was expected.
    """
    roles = pl.col("messages").list.eval(pl.element().struct.field("role"))
    seen = frame.with_columns(
        n_messages=pl.col("messages").list.len().fill_null(0),
        opens_with_system=(roles.list.first() == "system").fill_null(False),
        ends_with_answer=(roles.list.last() == "assistant").fill_null(False),
        posed_ask=pl.col("posed").struct.field("ask"),
        n_support=pl.col("support").list.len().fill_null(0),
    )
    _validate(ROWS, seen, path)
    return frame


def check_metrics(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return `frame` if it holds difficulty metrics; raises `RowError` as `check_rows` does."""
    _validate(METRICS, frame, path)
    return frame


def check_balanced(frame: pl.DataFrame, metrics: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return the balanced pool if it holds rows, none twice, each with its metrics.

    Raises:
        RowError: naming the file and the first row at fault.
    """
    check_rows(frame, path)
    strangers = frame.join(metrics, on="id", how="anti")
    if strangers.height:
        raise RowError(
            f"{path}: {strangers.height} rows have no difficulty metrics, the first is '{strangers['id'][0]}'; "
            f"run `rc1 difficulty-metrics` and `rc1 difficulty-bucketize` again"
        )
    return frame


def _validate(schema: pa.DataFrameSchema, frame: pl.DataFrame, path: Path) -> None:
    try:
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
    rule = _IN_WORDS.get(str(check), f"fails '{check}'")
    return f"{path}{where}: column '{column}' {rule}, found {first.get('failure_case')!r}{others}"
