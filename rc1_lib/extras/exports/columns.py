"""The rows of an export as columns: in the form of each trainer, from the balanced pool's training rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence

import orjson
import polars as pl

from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.errors import RC1Error
from rc1_lib.extras.exports.reward import WORLD
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.records import MeasuredRow, Row
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from rc1_lib.training.rows import buckets_and_words, is_kept_back, unfit, unlike
from rc1_lib.training.tool_schemas import DESCRIPTION, TOOLS

_ORIGIN = ("source", "source_id", "pack", "template_id", "role", "style", "question")
"""Where a row comes from; for people, since no reward reads it."""
_FIRST = pl.col("messages").list.eval(pl.element().struct.field("role") == "assistant").list.arg_max()
"""The place of the assistant's first message: every row has one."""
_ROLE, _CONTENT = (pl.element().struct.field(name) for name in ("role", "content"))
_TEXT = pl.struct(_ROLE.alias("role"), _CONTENT.alias("content"))
PROMPT = pl.col("messages").list.head(_FIRST).list.eval(_TEXT)
"""The messages before it, of role and content."""
_DESCRIBED = pl.when(_ROLE == "system").then(pl.format("{}\n\n{}", pl.lit(DESCRIPTION), _CONTENT)).otherwise(_CONTENT)


def training_rows(run: Run) -> list[MeasuredRow]:
    """Return the rows in the pool's order.

    They are those of `rc1 train`: playable, in its languages, and none repeats a held-out question. What depends on a
    tokenizer is not left out here.

    Raises:
        RC1Error: if pool or metrics are missing or differ from the ticket, or no row is left.
    """
    config = run.config
    buckets, _ = buckets_and_words(run)
    pool = read_vouched(run, BALANCED.name, BALANCED.path(run))
    rows: list[Row] = [row for row in map(orjson.loads, io.BytesIO(pool)) if not unfit(row, config)]
    held_out = [row for row in rows if is_kept_back(row, config)]
    train, _ = unlike(held_out, [row for row in rows if not is_kept_back(row, config)], config)
    if not train:
        raise RC1Error(
            f"{BALANCED.path(run)}: found no row that training may learn from; add training.languages, or "
            "build the pool again with rc1 build-pool"
        )
    return [{**row, "bucket": buckets[row["id"]]} for row in train]


def training_frame(run: Run, rows: Sequence[MeasuredRow]) -> pl.DataFrame:
    """Return the balanced pool's rows with these ids, in its order, with the columns of the pool and `bucket`."""
    measured = pl.DataFrame({"id": [row["id"] for row in rows], "bucket": [row["bucket"] for row in rows]})
    return read_rows(BALANCED.path(run)).join(measured, on="id", how="inner", maintain_order="left")


def _trl(frame: pl.DataFrame) -> pl.DataFrame:
    """One column `prompt`, and what reward and environment read, by name."""
    return frame.select(PROMPT.alias("prompt"), *(name for name in WORLD if name != "messages"), *_ORIGIN)


def _hf(frame: pl.DataFrame) -> pl.DataFrame:
    """Whole demonstrations in `messages`, the tools next to them, and what the reward reads."""
    tools = pl.lit(orjson.dumps(TOOLS).decode()).alias("tools")
    return frame.select("messages", tools, *(name for name in WORLD if name != "messages"), *_ORIGIN)


def _verl(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of verl's data sets. `extra_info.row` is the row as JSON, for the agent loop and the reward."""
    facts = ("id", *_ORIGIN[:2], "template_id", "task", "lang", "needs_clarification")
    return frame.with_row_index("index").select(
        pl.format("rc1/{}", "task").alias("data_source"),
        pl.lit("rc1").alias("agent_name"),
        PROMPT.alias("prompt"),
        pl.col("task").alias("ability"),
        pl.struct(pl.lit("rule").alias("style"), pl.col("answer").alias("ground_truth")).alias("reward_model"),
        pl.struct(
            pl.lit("train").alias("split"),
            pl.col("index").cast(pl.Int64),
            *facts,
            pl.col("bucket").alias("difficulty"),
            _row().alias("row"),
        ).alias("extra_info"),
    )


def _openrlhf(frame: pl.DataFrame) -> pl.DataFrame:
    """Messages in `input`, whose system message describes the tools; the row as JSON in `label`."""
    described = pl.struct(_ROLE.alias("role"), _DESCRIBED.alias("content"))
    prompt = pl.col("messages").list.head(_FIRST).list.eval(described)
    facts = ("id", "task", "lang", "answer", "bucket", *_ORIGIN[:4])
    datasource = pl.format("rc1/{}", "task").alias("datasource")
    return frame.select(prompt.alias("input"), _row().alias("label"), datasource, *facts)


def _row() -> pl.Expr:
    """Return what decides an episode, `WORLD`, as JSON."""
    return pl.struct(PROMPT if name == "messages" else pl.col(name) for name in WORLD).struct.json_encode()


FORMS: Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "trl": _trl, "verl": _verl, "openrlhf": _openrlhf, "hf": _hf,
}  # fmt: skip
"""Trainer -> what its rows look like."""


def parquet_of(frame: pl.DataFrame) -> bytes:
    """Return the frame as Parquet; the same frame gives the same bytes."""
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()
