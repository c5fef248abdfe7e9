"""A sheet of dialogues for people to label, and their labels: `good` or `bad`, in a JSONL or CSV file.

A person reads `text` and fills in `label`; RC1 reads `messages`. Rows of one `group`, such as one question, are not
independent. A row without a label is left out.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from rc1_lib.errors import RC1Error, RowError
from rc1_lib.judge.prompt import canonical, dialogue_sha256
from rc1_lib.records import Message
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.sources.record_files import read_records
from rc1_lib.workspace.artifacts import write_text
from rc1_lib.workspace.input_files import form_of, read_text

FORMS = (".jsonl", ".csv")
_COLUMNS = ("label", "group", "text", "messages")
_OTHER_MARKS = {";": "semicolons", "\t": "tabs"}
"""What spreadsheets of some languages write between cells."""
_GOOD = {"good": True, "bad": False}
_LONGEST = 2**31 - 1
"""Most bytes of a cell, which may contain a whole dialogue."""


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The labelled rows of a file.

    Attributes:
        rows: one line per label: `dialogue` (its fingerprint), `group`, `good`.
        messages: fingerprint of a dialogue -> its messages.
    """

    path: Path
    rows: pl.DataFrame
    messages: Mapping[str, list[Message]]


def write_sheet(path: Path, dialogues: Sequence[tuple[str, Sequence[Message]]], n: int, seed: int) -> int:
    """Write a sheet of `n` different dialogues in random order, without labels, and return how many it has.

    Args:
        path: `.jsonl` or `.csv`.
        dialogues: group and chat messages of each.
        seed: the same seed gives the same sheet.

    Raises:
        RC1Error: when the file exists, since it may have labels, or has another form.
    """
    _check_form(path)
    if path.exists():
        raise RC1Error(
            f"{path}: exists and may have labels; compare with them by --labels, name another file with --out, or "
            f"delete it"
        )
    found = list({dialogue_sha256(messages): (group, messages) for group, messages in dialogues}.values())
    drawn = random.Random(seed).sample(found, min(n, len(found)))
    rows = [
        {"label": "", "group": group, "text": as_text(messages), "messages": list(messages)}
        for group, messages in drawn
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    if form_of(path) == ".csv":
        stream = io.StringIO(newline="")
        table = csv.DictWriter(stream, _COLUMNS)
        table.writeheader()
        table.writerows({**row, "messages": orjson.dumps(row["messages"]).decode()} for row in rows)
        write_text(path, stream.getvalue())
    else:
        write_text(path, "".join(orjson.dumps(row).decode() + "\n" for row in rows))
    return len(rows)


def as_text(messages: Sequence[Message]) -> str:
    """Format a dialogue for a human reader: speakers and texts, with calls as `tool(arguments)`."""
    parts = []
    for message in canonical(messages):
        calls = [f"{call['name']}({call['arguments']})" for call in message.get("tool_calls", ())]
        parts.append("\n".join([f"[{message['role']}]", *filter(None, [message["content"]]), *calls]))
    return "\n\n".join(parts)


def read_labels(path: Path) -> LabelFile:
    """Read people's labels.

    Raises:
        RC1Error: names the first faulty line, what was found, what was expected and what to do; or says that there are
            no labels.
    """
    _check_form(path)
    rows, groups, messages = list[dict[str, Any]](), dict[str, str](), dict[str, list[Message]]()
    for line, record in _table(path) if form_of(path) == ".csv" else _lines(path):
        try:
            good = _label(record.get("label"))
            if good is None:
                continue
            dialogue = _dialogue(record.get("messages"))
        except RC1Error as error:
            raise RowError(f"{path}, line {line}: {error}") from None
        name = dialogue_sha256(dialogue)
        messages.setdefault(name, dialogue)
        given = record.get("group")
        group = groups.setdefault(name, name if given in (None, "") else str(given))
        rows.append({"dialogue": name, "group": group, "good": good})
    if not rows:
        raise RowError(f"{path}: no row has a label; write good or bad under 'label'")
    return LabelFile(path, pl.DataFrame(rows), messages)


def _check_form(path: Path) -> None:
    if form_of(path) not in FORMS:
        raise RowError(f"{path}: found the file type '{form_of(path)}', expected {' or '.join(FORMS)}; convert it")


def _label(value: object) -> bool | None:
    """Return whether a label says good; None without a label."""
    word = str(value or "").strip().lower()
    if word and word not in _GOOD:
        raise RowError(f"'label' is {value!r}, expected good, bad or nothing; correct the line")
    return _GOOD.get(word)


def _dialogue(value: object) -> list[Message]:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise RowError(
                f"'messages' is not JSON ({error}); expected a list of chat messages, as in a sheet"
            ) from None
    return dialogue_of([], value, "'messages'")


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    yield from ((record.line, record.value) for record in read_records(path))


def _table(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = read_text(path)
    except OSError as error:
        raise RowError(f"{path}: cannot be read ({error.strerror}); expected a table of labels") from None
    except UnicodeDecodeError as error:
        raise RowError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    csv.field_size_limit(_LONGEST)
    table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        lacking = {"label", "messages"} - set(table.fieldnames or ())
        if lacking:
            head = "".join(table.fieldnames or ())
            marks = next((f" between {name}" for mark, name in _OTHER_MARKS.items() if mark in head), "")
            raise RowError(
                f"{path}, line 1: found no column {', '.join(sorted(lacking))}{marks}; expected the columns of a sheet "
                f"({', '.join(_COLUMNS)}), separated by commas; save the table so"
            )
        yield from ((table.line_num, record) for record in table)
    except csv.Error as error:
        raise RowError(f"{path}, line {table.line_num}: is not a valid table ({error}); quote the cell") from None
