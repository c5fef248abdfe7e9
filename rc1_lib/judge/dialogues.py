"""Dialogues to be scored, read from a JSONL file, every line checked before the first is asked about; and a probe's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.errors import RowError
from rc1_lib.records import Message
from rc1_lib.workspace.input_files import open_text

_CALL = ("name", "arguments")
_SHOWN = 10
"""Damaged lines that are reported one by one; the others are counted."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One dialogue of a file.

    Attributes:
        line: where it stands, from 1.
        id: that of its row; `line N` where the row has none.
        messages: in chat format.
    """

    line: int
    id: str
    messages: list[Message]


def read_dialogues(path: Path, first: int | None = None) -> list[Dialogue]:
    """Read the dialogues of a file of JSON objects, one a line, each with its `messages`; other keys mean nothing here.

    Args:
        path: rows of the pool or the shadow set, or bare `{"messages": [...]}`. Empty lines are passed over.
        first: how many dialogues are wanted; what stands below them is not read. Default: all.

    Raises:
        RowError: when there is no such file, or lines of it hold no dialogue, naming each.
    """
    found: list[Dialogue] = []
    damaged: list[str] = []
    try:
        with open_text(path) as stream:
            for number, text in enumerate(stream, 1):
                if first is not None and len(found) + len(damaged) >= first:
                    break
                if not text.strip():
                    continue
                row, fault = _read(text)
                if fault:
                    damaged.append(f"line {number}: {fault}")
                else:
                    name = row.get("id")
                    found.append(Dialogue(number, f"line {number}" if name is None else str(name), row["messages"]))
    except OSError as error:
        raise RowError(f"{path}: cannot be read ({error.strerror}); expected a JSONL file of dialogues") from None
    if damaged:
        more = f"; and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
        raise RowError(
            f"{path}: {'; '.join(damaged[:_SHOWN])}{more}. Nothing was asked: correct the file and run again"
        )
    if not found:
        raise RowError(f'{path}: holds no dialogue, expected one JSON object a line with its "messages"')
    return found


def misfit(messages: object) -> str:
    """What keeps `messages` from being a dialogue that can be judged, in words; empty when nothing does."""
    if not isinstance(messages, list) or not messages:
        return "'messages' is no list of chat messages with at least one in it"
    for place, message in enumerate(messages, 1):
        fault = _misfit(message)
        if fault:
            return f"message {place} {fault}"
    if not any(message["role"] == "assistant" for message in messages):
        return "no message is the assistant's, so there is nothing to judge"
    return ""


def _read(text: bytes) -> tuple[dict[str, Any], str]:
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return {}, f"is not JSON ({error.msg}, column {error.colno})"
    if not isinstance(row, dict):
        return {}, f"is a JSON {type(row).__name__}, expected an object"
    if "messages" not in row:
        return {}, "has no 'messages'"
    return row, misfit(row["messages"])


def _misfit(message: object) -> str:
    if not isinstance(message, Mapping):
        return "is no object"
    if not isinstance(message.get("role"), str) or not message["role"]:
        return "has no role"
    if not isinstance(message.get("content"), str | None):
        return f"holds a {type(message['content']).__name__} as its content, expected a text"
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        return "has tool_calls that are no list"
    for call in calls or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not all(isinstance(function.get(key), str) for key in _CALL):
            return "has a tool call without a function's name and arguments as texts"
    return ""


_FILE = Path(__file__).with_name("probe_dialogues.yaml")


def probe_dialogues() -> list[list[Message]]:
    """Small dialogues in English and Chinese, in chat format, all different."""
    found: list[list[Message]] = parse_yaml(_FILE.read_text(encoding="utf-8"))
    return found
