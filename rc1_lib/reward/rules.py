"""The rule dimensions: what can be told of a dialogue by rule, from its messages alone, as columns.

They see no gold answer, no label of what was missing and no outcome.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import get_args

import orjson
import polars as pl

from rc1_lib.errors import ConfigError
from rc1_lib.language.numerals import numbers_of, operands_of
from rc1_lib.language.open_references import open_reference
from rc1_lib.memo import Memo
from rc1_lib.records import Message, Rule
from rc1_lib.reward.support import Grounds
from rc1_lib.rows.chat import per_row, spread_calls, spread_messages
from rc1_lib.rows.counts import add_counts
from rc1_lib.scoring.transcript import CALC


def add_rules(frame: pl.DataFrame, names: Iterable[Rule]) -> pl.DataFrame:
    """Add one Float64 column in [0, 1] for each rule named; null where `messages` is null.

    Raises:
        ConfigError: for a rule that there is not.
        RowError: when there are no chat messages to read.
    """
    wanted = list(names)
    unknown = sorted(set(wanted) - set(RULES))
    if unknown:
        raise ConfigError(f"there is no rule {', '.join(unknown)}; the rules are {', '.join(RULES)}")
    columns = {name: _BY_COLUMN[name](frame).cast(pl.Float64) for name in wanted if name in _BY_COLUMN}
    followed = [name for name in wanted if name not in _BY_COLUMN]
    if followed:
        columns |= _followed(frame, followed)
    return frame.with_columns([columns[name].alias(name) for name in wanted])


def settled(frame: pl.DataFrame) -> pl.Series:
    """1 where nothing was left open, or at least one clarifying question was asked; else 0.

    What is open is decided by `rc1_lib.language.open_references`, on the user's first message and the results of tools.
    """
    messages = spread_messages(frame)
    said = pl.col("content").filter(pl.col("role") == "user").first()
    # The user's replies are among the results, but only where something was asked, which settles the matter.
    read = pl.col("content").filter(pl.col("role") == "tool").str.join("\n")
    texts = messages.group_by("row").agg(said=said, read=read)
    opened = texts.select("row", open=open_reference("said", "read").cast(pl.Int8))
    asked = add_counts(frame.select("messages"))["clarifications"]
    return ((per_row(frame, opened, "open", 0) == 0) | (asked > 0)).cast(pl.Float64)


def sourced(frame: pl.DataFrame) -> pl.Series:
    """Share of the numbers in sums that the user or a tool had said before; 1 where nothing was calculated."""
    messages = spread_messages(frame)
    speaks = pl.col("role").is_in(["user", "tool"])
    said = (
        _numbers(messages.filter(speaks), numbers_of(pl.col("content")))
        .group_by("row", "number")
        .agg(since=pl.col("place").min())
    )
    used = _numbers(spread_calls(messages).filter(pl.col("name") == CALC), operands_of(pl.col("arguments")))
    known = pl.col("since").fill_null(pl.col("place")) < pl.col("place")
    shares = used.join(said, on=["row", "number"], how="left").group_by("row").agg(sourced=known.mean())
    return per_row(frame, shares, "sourced", 1.0)


def _numbers(lines: pl.DataFrame, found: pl.Expr) -> pl.DataFrame:
    """One line a number: `row, place, number`."""
    return lines.select("row", "place", number=found).explode("number").drop_nulls("number")


def _followed(frame: pl.DataFrame, names: Sequence[Rule]) -> dict[Rule, pl.Series]:
    """The rules that follow a dialogue's argument: each dialogue is read once for all of them."""
    spread_messages(frame.head(0))  # refuses what is no chat
    found = [None if messages is None else _worth(messages, names) for messages in frame["messages"].to_list()]
    return {
        name: pl.Series([None if worth is None else worth[place] for worth in found], dtype=pl.Float64)
        for place, name in enumerate(names)
    }


def _worth(messages: list[Message], names: Sequence[Rule]) -> tuple[float, ...]:
    """What these rules give a dialogue; the same one comes again, in another stage or with another of its takes."""
    key = hashlib.sha256(orjson.dumps([names, messages])).digest()
    return _read_before.get(key, lambda: _read(Grounds.of(messages), names))


def _read(grounds: Grounds, names: Sequence[Rule]) -> tuple[float, ...]:
    return tuple(getattr(grounds, name) for name in names)


_BY_COLUMN: dict[Rule, Callable[[pl.DataFrame], pl.Series]] = {"settled": settled, "sourced": sourced}
_read_before = Memo[tuple[float, ...]](20_000)
"""What `_worth` found, by dialogue and rules: a calibration has a third as many, and an episode hardly comes again."""
RULES: tuple[Rule, ...] = get_args(Rule)
"""Every rule that there is; `rc1_lib.reward.support` says what those mean that are not in this module."""
