"""Read rows into columns, and derive the texts that measures and gates read."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import orjson
import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.records import Row
from rc1_lib.rows.chat import add_counts
from rc1_lib.rows.lines import TextsOnly
from rc1_lib.runtime.batches import in_parts
from rc1_lib.workspace.input_files import open_text

_PLAIN: dict[Any, type[pl.DataType]] = {str: pl.String, int: pl.Int64, bool: pl.Boolean}


def columns_of(record: type) -> dict[str, pl.DataType | type[pl.DataType]]:
    """Return the polars types of a frame of such records, by name; `record` is a typed dict such as `Row`."""
    return {name: _column(kind) for name, kind in get_type_hints(record).items()}


def _column(kind: Any) -> pl.DataType | type[pl.DataType]:
    if is_typeddict(kind):
        return pl.Struct(columns_of(kind))
    if get_origin(kind) is list:
        return pl.List(_column(get_args(kind)[0]))
    if get_origin(kind) is Literal:
        return pl.String
    alternatives = [each for each in get_args(kind) if each is not NoneType]
    return _column(alternatives[0]) if alternatives else _PLAIN[kind]


ROW_COLUMNS = columns_of(Row)


_PARSED_AT_ONCE = 8 << 20
"""Bytes of rows that are parsed at a time; the last line is completed."""
METRIC_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String,
    "task": pl.String,
    "len_tokens": pl.Int64,
    "turns": pl.Int64,
    "tool_hops": pl.Int64,
    "entities": pl.Int64,
    "ops_numeric": pl.Int64,
    "connector_density": pl.Float64,
    "coref_pronouns": pl.Int64,
    "clue_overlap": pl.Float64,
    "ambiguity_flags": pl.List(pl.String),
    "needs_clarification": pl.Boolean,
    "bucket": pl.String,
}


_TEXTS_ONLY = TextsOnly(ROW_COLUMNS)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


_CACHE: OrderedDict[bytes, pl.DataFrame] = OrderedDict()
_CACHE_LOCK = threading.Lock()
_CACHE_SIZE = 4
"""Shadow set, takes, pool and balanced pool: many functions read each, and parsing is far slower than hashing."""


def read_rows(path: Path) -> pl.DataFrame:
    """Read a JSONL file of rows into one frame with the columns of `ROW_COLUMNS`.

    The file is read every time, but bytes that this process has already parsed are not parsed again.

    Raises:
        RowError: naming the file, the line and what is wrong there.
    """
    if not path.exists():
        raise RowError(f"{path}: there is no such file; build it with `rc1 build-pool` or give another file")
    if path.stat().st_size == 0:
        raise RowError(f"{path}: the file is empty; expected one JSON row per line")
    if path.is_dir():
        raise RowError(f"{path}: is a folder; expected a JSONL file")
    with _CACHE_LOCK:
        try:
            return _read(path).clone()
        except OSError as error:
            raise RowError(f"{path}: cannot be read ({error.strerror}); expected a JSONL file") from None


def cache_part(part: bytes, whole: bytes, keep: Sequence[bool]) -> None:
    """Cache the rows of a file whose lines were copied from a cached one, so that they need not be parsed.

    Does nothing if `whole` is no longer in the cache.

    Args:
        part: SHA-256 of the file's bytes.
        whole: SHA-256 of the bytes of the file that the lines were copied from.
        keep: for each row of `whole`, whether its line is in `part`.
    """
    with _CACHE_LOCK:
        frame = _CACHE.get(whole)
        if frame is not None:
            _store(part, frame.filter(pl.Series(keep, dtype=pl.Boolean)))


def _read(path: Path) -> pl.DataFrame:
    with open_text(path) as stream:
        start = stream.tell()
        digest = hashlib.file_digest(stream, "sha256").digest()
        if digest in _CACHE:
            _CACHE.move_to_end(digest)
            return _CACHE[digest]
        stream.seek(start)
        parsed = hashlib.sha256()  # hashed again: the file may have changed since
        parts: list[pl.DataFrame] = []
        lines = rows = 0
        while content := stream.read(_PARSED_AT_ONCE):
            content += stream.readline()
            parsed.update(content)
            parts.append(_parsed(path, content, lines, rows))
            lines += content.count(b"\n")
            rows += parts[-1].height
    if rows == 0:
        raise RowError(f"{path}: holds no row; expected one JSON row per line")
    return _store(parsed.digest(), pl.concat(parts, rechunk=False))


def _store(digest: bytes, frame: pl.DataFrame) -> pl.DataFrame:
    _CACHE[digest] = frame
    while len(_CACHE) > _CACHE_SIZE:
        _CACHE.popitem(last=False)
    return frame


def _parsed(path: Path, content: bytes, lines: int, rows: int) -> pl.DataFrame:
    """Parse some lines of the file, which come after `lines` lines with `rows` rows."""
    _reject_lone_surrogates(path, content, lines)
    if misfit := _TEXTS_ONLY.misfit(content, lines):
        raise RowError(f"{path}, {misfit}")
    try:
        frame = pl.read_ndjson(content, schema=pl.Schema(ROW_COLUMNS))
    except (pl.exceptions.PolarsError, OSError) as error:
        fault = _diagnose(content, lines)
        raise RowError(f"{path}, {fault}" if fault else f"{path}: cannot be read as JSONL ({error})") from None
    _reject_nulls_in_lists(path, frame, rows)
    # A copy: the parser leaves texts in buffers that are mostly empty and take four times the memory.
    return frame.select(pl.all().gather(pl.int_range(pl.len())))


def _reject_lone_surrogates(path: Path, content: bytes, before: int) -> None:
    """Reject half of a surrogate pair, which can neither be hashed nor written as UTF-8."""
    if not _SURROGATE.search(content):
        return
    for number, line in enumerate(content.split(b"\n"), before + 1):
        if _SURROGATE.search(line):
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise RowError(f"{path}, line {number}: not valid JSON ({error}); write the whole character") from None


def _reject_nulls_in_lists(path: Path, frame: pl.DataFrame, before: int) -> None:
    for name, kind in ROW_COLUMNS.items():
        if isinstance(kind, pl.List):
            gaps = frame[name].list.eval(pl.element().is_null()).list.any().fill_null(False)
            if gaps.any():
                row = gaps.arg_true()[0]
                raise RowError(
                    f"{path}: row {before + row + 1} ('{frame['id'][row]}'): '{name}' holds null among its values; "
                    f"leave it out"
                )


def _diagnose(content: bytes, before: int) -> str:
    """Describe the first line that is not a row; called only when the fast parser has rejected these lines.

    Found by bisection, since parsing every line by itself would take minutes.
    """
    lines = content.split(b"\n")
    first, end = 0, len(lines)
    while end - first > 1:
        middle = (first + end) // 2
        if _readable(b"\n".join(lines[first:middle])):
            first = middle
        else:
            end = middle
    line, number = lines[first], before + first + 1
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        cut = "; the last line is cut off: write the file again" if first == len(lines) - 1 else ""
        return f"line {number}: not valid JSON ({error}); expected one JSON object per line{cut}"
    if not isinstance(row, dict):
        return f"line {number}: found {type(row).__name__}; expected a JSON object"
    problem = _misfit(row)
    return f"line {number}: {problem}" if problem else ""


def _readable(content: bytes) -> bool:
    try:
        pl.read_ndjson(content, schema=pl.Schema(ROW_COLUMNS))
    except (pl.exceptions.PolarsError, OSError):
        return not content.strip()
    return True


def _misfit(row: dict[str, Any]) -> str:
    for key, value in row.items():
        if key not in ROW_COLUMNS or value is None:
            continue
        try:
            pl.Series([value], dtype=ROW_COLUMNS[key], strict=True)
        except (pl.exceptions.PolarsError, TypeError, ValueError):
            return f"key '{key}' holds {str(value)[:60]!r}; expected {ROW_COLUMNS[key]}"
    return ""


def _contents(*roles: str) -> pl.Expr:
    """Join the contents of messages with these roles by newlines; of all messages if no role is given."""
    message = pl.element()
    chosen = message.filter(message.struct.field("role").is_in(list(roles))) if roles else message
    return pl.col("messages").list.eval(chosen.struct.field("content")).list.join("\n", ignore_nulls=True)


def _calls(*tools: str) -> pl.Expr:
    """Return each row's calls of these tools as one list; of all tools if none is given."""
    calls = pl.element().struct.field("tool_calls").explode().struct.field("function")
    chosen = calls.filter(calls.struct.field("name").is_in(list(tools))) if tools else calls.drop_nulls()
    return pl.col("messages").list.eval(chosen)


def _texts() -> dict[str, pl.Expr]:
    message = pl.element()
    user = message.filter(message.struct.field("role") == "user").struct.field("content")
    arguments = pl.element().struct.field("arguments")
    called = _calls().list.eval(arguments).list.join("\n")
    return {
        "prompt": pl.col("messages").list.eval(user).list.first(),
        "written": _contents("system", "user", "assistant"),
        "dialogue": _contents("user", "assistant", "tool"),
        "talk": _contents("user", "assistant"),
        "material": _contents("user", "tool"),
        "evidence": pl.col("support").list.join(" "),
        "expressions": _calls("calc").list.eval(arguments).list.join(" "),
        "arguments": called,
        "everything": pl.concat_str(_contents(), called, separator="\n", ignore_nulls=True),
    }


def texts_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return one of the text columns that `with_texts` adds."""
    text = _texts()[name].alias(name)
    return in_parts(frame, lambda part: part.select(text)).to_series()


def with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that measures read.

    `prompt` is the first user message, `evidence` the supporting sentences, `arguments` those of all calls,
    `expressions` those of `calc`. Contents of messages, by role: `written` (all but tools), `dialogue` (user,
    assistant, tool), `talk` (user, assistant), `material` (user, tool); `everything` is all contents and arguments.
    `turns`, `tool_hops` and `clarifications` are defined in `rc1_lib.rows.chat`.
    """
    return add_counts(frame).with_columns(**_texts())
