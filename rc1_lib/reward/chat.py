"""Converts prompts and completions of training libraries to one dialogue in chat format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from rc1_lib.errors import RC1Error
from rc1_lib.judge.prompt import misfit
from rc1_lib.records import Message


def dialogue_of(prompt: object, completion: object, where: str) -> list[Message]:
    """Join prompt and completion to one dialogue.

    Args:
        prompt: a text (what the user said) or chat messages.
        completion: a text (what the assistant said) or chat messages.
        where: their name in error messages.

    Raises:
        RC1Error: when they are neither, or contain what a text judge cannot read.
    """
    messages = [*_messages(prompt, "user", where), *_messages(completion, "assistant", where)]
    fault = misfit(messages)
    if fault:
        raise RC1Error(f"{where}: {fault}; expected texts or lists of chat messages as in the training library")
    return messages


def _messages(value: object, role: str, where: str) -> list[Any]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise RC1Error(f"{where}: found a {type(value).__name__}, expected a text or a list of chat messages")
    return [_message(message, role) for message in value]


def _message(message: object, role: str) -> object:
    """Convert a message to the judge's format: contents and arguments as texts, without empty fields."""
    if not isinstance(message, Mapping):
        return message  # `misfit` says what is wrong
    calls = message.get("tool_calls")
    return {
        "role": message.get("role") or role,
        "content": _text(message.get("content")),
        # Rows from a column store have arrays, and nulls if a message has no calls.
        **({"tool_calls": [_call(call) for call in calls]} if calls is not None and len(calls) else {}),
    }


def _text(content: object) -> object:
    """Join the parts of a content if all are texts; return anything else unchanged."""
    if content is None or isinstance(content, str | Mapping) or not isinstance(content, Iterable):
        return content
    parts = list(content)
    texts = [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    return "".join(texts) if len(texts) == len(parts) else parts


def _call(call: object) -> object:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {"type": "function", "function": {"name": function.get("name"), "arguments": text}}
