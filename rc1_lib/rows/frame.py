"""Reading rows into columns, and the texts that measures and gates look at."""

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
    """The columns of a frame of such records, by name: `record` is a typed dict, as `Row` is one."""
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
"""Bytes of rows that are parsed at a time, and the rest of the line in which they end."""
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


_READ: OrderedDict[bytes, pl.DataFrame] = OrderedDict()
_READING = threading.Lock()
_MOST_READ = 4
"""Shadow set, takes, pool and balanced pool: each is read by many, and parsing costs far more than hashing."""


def read_rows(path: Path) -> pl.DataFrame:
    """Read a JSONL file of rows into one frame with the columns of `ROW_COLUMNS`.

    The file is read every time; bytes that this process has parsed before are not parsed again.

    Raises:
        RowError: naming the file, the line and what is wrong there.
    """
    if not path.exists():
        raise RowError(f"{path}: there is no such file; build it with `rc1 build-pool` or name another")
    if path.stat().st_size == 0:
        raise RowError(f"{path}: the file is empty, expected one JSON row a line")
    if path.is_dir():
        raise RowError(f"{path}: is a folder, expected a JSONL file")
    with _READING:
        try:
            return _read(path).clone()
        except OSError as error:
            raise RowError(f"{path}: cannot be read ({error.strerror}), expected a JSONL file") from None


def know_part(part: bytes, whole: bytes, keep: Sequence[bool]) -> None:
    """Know the rows of a file that holds lines of one which was parsed, so that they are not parsed again.

    Nothing is known from then on where `whole` is not any more.

    Args:
        part: SHA-256 of the file's bytes.
        whole: SHA-256 of the bytes of the one that its lines were taken from.
        keep: of each row of the whole, whether its line is in the part.
    """
    with _READING:
        frame = _READ.get(whole)
        if frame is not None:
            _remember(part, frame.filter(pl.Series(keep, dtype=pl.Boolean)))


def _read(path: Path) -> pl.DataFrame:
    with open_text(path) as stream:
        start = stream.tell()
        digest = hashlib.file_digest(stream, "sha256").digest()
        if digest in _READ:
            _READ.move_to_end(digest)
            return _READ[digest]
        stream.seek(start)
        parsed = hashlib.sha256()  # the file may have changed meanwhile
        parts: list[pl.DataFrame] = []
        lines = rows = 0
        while content := stream.read(_PARSED_AT_ONCE):
            content += stream.readline()
            parsed.update(content)
            parts.append(_parsed(path, content, lines, rows))
            lines += content.count(b"\n")
            rows += parts[-1].height
    if rows == 0:
        raise RowError(f"{path}: holds no row, expected one JSON row a line")
    return _remember(parsed.digest(), pl.concat(parts, rechunk=False))


def _remember(digest: bytes, frame: pl.DataFrame) -> pl.DataFrame:
    _READ[digest] = frame
    while len(_READ) > _MOST_READ:
        _READ.popitem(last=False)
    return frame


def _parsed(path: Path, content: bytes, lines: int, rows: int) -> pl.DataFrame:
    """The rows of some lines of the file; before them come `lines` lines with `rows` rows."""
    _refuse_half_characters(path, content, lines)
    if misfit := _TEXTS_ONLY.misfit(content, lines):
        raise RowError(f"{path}, {misfit}")
    try:
        frame = pl.read_ndjson(content, schema=pl.Schema(ROW_COLUMNS))
    except (pl.exceptions.PolarsError, OSError) as error:
        fault = _diagnose(content, lines)
        raise RowError(f"{path}, {fault}" if fault else f"{path}: cannot be read as JSONL ({error})") from None
    _refuse_gaps(path, frame, rows)
    # A copy: texts as they are parsed lie in buffers that are mostly empty, and take four times the memory.
    return frame.select(pl.all().gather(pl.int_range(pl.len())))


def _refuse_half_characters(path: Path, content: bytes, before: int) -> None:
    """Half a surrogate pair is no text: it can be neither hashed nor written again."""
    if not _SURROGATE.search(content):
        return
    for number, line in enumerate(content.split(b"\n"), before + 1):
        if _SURROGATE.search(line):
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise RowError(f"{path}, line {number}: not valid JSON ({error}); write the whole character") from None


def _refuse_gaps(path: Path, frame: pl.DataFrame, before: int) -> None:
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
    """The first line that is no row, in words; only run when the fast reader has refused these lines.

    They are halved until one is left: to look at every line by itself would take minutes.
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
        cut = "; it is the last line, and cut off: write the file again" if first == len(lines) - 1 else ""
        return f"line {number}: not valid JSON ({error}); expected one JSON object a line{cut}"
    if not isinstance(row, dict):
        return f"line {number}: found {type(row).__name__}, expected a JSON object"
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
            return f"key '{key}' holds {str(value)[:60]!r}, expected {ROW_COLUMNS[key]}"
    return ""


def _contents(*roles: str) -> pl.Expr:
    """The contents of messages of these roles, one below the other; of all messages when no role is named."""
    message = pl.element()
    chosen = message.filter(message.struct.field("role").is_in(list(roles))) if roles else message
    return pl.col("messages").list.eval(chosen.struct.field("content")).list.join("\n", ignore_nulls=True)


def _calls(*tools: str) -> pl.Expr:
    """The tool calls of all messages by any of `tools`, as one list per row."""
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
    """One of the columns that `with_texts` adds, for every row."""
    text = _texts()[name].alias(name)
    return in_parts(frame, lambda part: part.select(text)).to_series()


def with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that measures read.

    `prompt`: the first user message. `written`: all that is not a tool's output (system, user and assistant text).
    `dialogue`: user, assistant and tool text. `everything`: all contents and all call arguments. `talk`: user and
    assistant text. `material`: user and tool text. `evidence`: the supporting sentences. `expressions`: arguments of
    `calc`. `turns`, `tool_hops`, `clarifications`: see `rc1_lib.rows.chat`.
    """
    return add_counts(frame).with_columns(**_texts())
