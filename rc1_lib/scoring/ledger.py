"""The usage log as a hash chain: each line holds the hash of the one before, and a plain file repeats them all.

The chain shows that a line was changed, taken out or put in. It is no signature: whoever can write the workspace can
also compute a new chain. The provider's own records of the request ids are what an outsider can check it against.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from rc1_lib.scoring.usage_lines import LOG_SCHEMA, Line

GENESIS = "0" * 64
_COLUMNS = tuple(LOG_SCHEMA)
SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS log ({', '.join(_COLUMNS)}, hash, PRIMARY KEY (seq)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS log_by_ask ON log (ask_key)",
    "CREATE TABLE IF NOT EXISTS anchor (one INTEGER PRIMARY KEY CHECK (one = 1), lines, hash, bytes)",
    f"INSERT OR IGNORE INTO anchor VALUES (1, 0, '{GENESIS}', 0)",
)
"""Tables of the store's database."""


def append(db: sqlite3.Connection, lines: Sequence[Line]) -> bytes:
    """Add lines to the chain, inside a write transaction; what `write` has to put into the file before it commits."""
    count, last, length = db.execute("SELECT lines, hash, bytes FROM anchor").fetchone()
    rows, texts = [], []
    for seq, line in enumerate(lines, count + 1):
        row = _row(seq, line)
        last, text = _link(last, row)
        rows.append((*row, last))
        texts.append(text)
    written = b"".join(texts)
    db.executemany(f"INSERT INTO log VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})", rows)
    db.execute("UPDATE anchor SET lines = ?, hash = ?, bytes = ?", (count + len(rows), last, length + len(written)))
    return written


def write(db: sqlite3.Connection, mirror: Path, text: bytes) -> None:
    """Write what this transaction's `append`s returned; call it as the last thing before the transaction commits.

    The file is written before the commit, up to the length that the anchor then names. What a killed process left
    behind that length was never committed, and the next writer cuts it off.
    """
    length = db.execute("SELECT bytes FROM anchor").fetchone()[0] - len(text)
    if not length and mirror.exists() and mirror.stat().st_size:
        # A log without its table: somebody moved the store away and left this. It is a record, so it is kept.
        mirror.rename(mirror.with_name(f"{mirror.name}.{int(mirror.stat().st_mtime)}.old"))
    handle = os.open(mirror, os.O_WRONLY | os.O_CREAT, 0o644)
    with os.fdopen(handle, "wb") as stream:
        if os.fstat(handle).st_size > length:
            stream.truncate(length)
        stream.seek(length)
        stream.write(text)
        stream.flush()
        os.fsync(handle)


def damage(db: sqlite3.Connection, mirror: Path) -> str:
    """What is wrong with the log, in a sentence; empty when every line is as it was written."""
    count, anchored, length = db.execute("SELECT lines, hash, bytes FROM anchor").fetchone()
    last, seen, taken = GENESIS, 0, 0
    try:
        lines = mirror.open("rb") if count else None
    except OSError as error:
        return f"{mirror.name} cannot be read ({error.strerror}), but {count} lines were written to it"
    try:
        for *row, kept in db.execute(f"SELECT {', '.join(_COLUMNS)}, hash FROM log ORDER BY seq"):
            seen += 1
            if _was_never_written(row):
                return f"line {seen} of the usage log is not what was written: it was edited"
            last, text = _link(last, row)
            if row[0] != seen or kept != last:
                return f"line {seen} of the usage log is not what was written: it was edited, taken out or put in"
            if lines is not None and lines.read(len(text)) != text:
                return f"line {seen} of {mirror.name} is not what was written: the file was edited"
            taken += len(text)
    except sqlite3.OperationalError as error:  # a text that is not UTF-8
        return f"line {seen + 1} of the usage log cannot be read, so it is not what was written: {error}"
    finally:
        if lines is not None:
            lines.close()
    if (seen, last, taken) != (count, anchored, length):
        return f"the usage log holds {seen} lines, but {count} were written"
    return ""


def read(db: sqlite3.Connection, where: str = "", values: Sequence[Any] = ()) -> pl.DataFrame:
    """Lines of the log in the order of writing, with the columns of `LOG_SCHEMA`."""
    rows = db.execute(f"SELECT {', '.join(_COLUMNS)} FROM log {where} ORDER BY seq", values).fetchall()
    frame = pl.DataFrame(rows, schema={**LOG_SCHEMA, "billable": pl.Int64}, orient="row", strict=False)
    return frame.with_columns(pl.col("billable").cast(pl.Boolean))


def _row(seq: int, line: Line) -> tuple[Any, ...]:
    written = {
        "scores": None if line.scores is None else orjson.dumps(dict(line.scores)).decode(),
        "outcome": line.outcome.value,
        "billable": int(line.billable),
    }
    return (seq, *(written[name] if name in written else getattr(line, name) for name in _COLUMNS[1:]))


def _was_never_written(row: Sequence[Any]) -> bool:
    """Whether it holds what JSON cannot tell apart from nothing, or cannot hold."""
    return any(isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)) for value in row)


def _link(previous: str, row: Sequence[Any]) -> tuple[str, bytes]:
    """The row's hash, and its line in the file."""
    fields = dict(zip(_COLUMNS, row, strict=True))
    if type(fields["billable"]) is int and fields["billable"] in (0, 1):
        fields["billable"] = bool(fields["billable"])  # SQLite knows no booleans; anything else is an edit, left as is
    body = orjson.dumps(fields)
    digest = hashlib.sha256(previous.encode() + body).hexdigest()
    return digest, body[:-1] + b',"hash":"' + digest.encode() + b'"}\n'
