"""Parses a model's turn: its words and tool calls, or the reason why it is malformed.

Two forms: Qwen3's text, `words <tool_call>{"name": ..., "arguments": {...}}</tool_call> ...` after one block of
thinking, and messages with parsed `tool_calls`. One bad call makes the whole turn malformed, and none of its calls
runs. Calls inside the thinking are ignored. The time is linear in the length of the turn, which is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rc1_lib.environment.calls import (
    CheckedCall,
    FormatError,
    FormatFault,
    call_of_json,
    call_of_message,
    checked_text,
)
from rc1_lib.environment.limits import Limits
from rc1_lib.environment.markers import CALL, CALL_END, THINK, THINK_END, TURN_ENDS, has_role_mark


@dataclass(frozen=True, slots=True)
class Turn:
    """A well-formed turn; without calls it is the final answer."""

    content: str
    calls: tuple[CheckedCall, ...]
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A malformed turn and the reason; the sentence may be shown to the model."""

    fault: FormatFault
    sentence: str


def read_text(text: object, limits: Limits) -> Turn | Malformed:
    """The turn that a model wrote in Qwen3's chat form, with or without its end mark."""
    try:
        return _turn_of_text(_bounded(text, limits), limits)
    except FormatError as error:
        return Malformed(error.fault, error.sentence)


def read_message(message: object, limits: Limits) -> Turn | Malformed:
    """The turn in a chat message with parsed calls; a content with calls in it is malformed."""
    try:
        return _turn_of_message(message, limits)
    except FormatError as error:
        return Malformed(error.fault, error.sentence)


def _turn_of_text(text: str, limits: Limits) -> Turn:
    for end in TURN_ENDS:
        if text.endswith(end):
            text = text.removesuffix(end)
            break
    thinking, rest = _split_thinking(text)
    content, *blocks = rest.split(CALL)
    _count(len(blocks), limits)
    calls = tuple(call_of_json(_inside(block), limits) for block in blocks)
    return _turn(content, calls, thinking)


def _turn_of_message(message: object, limits: Limits) -> Turn:
    if not isinstance(message, Mapping) or message.get("role", "assistant") != "assistant":
        raise FormatError(FormatFault.NOT_A_CALL, "A turn is one message of the assistant.")
    content = message.get("content")
    thinking, content = _split_thinking(_bounded("" if content is None else content, limits))
    entries = _entries(message)
    _count(len(entries), limits)
    return _turn(content, tuple(call_of_message(entry, limits) for entry in entries), thinking)


def _entries(message: Mapping[str, Any]) -> list[Any] | tuple[Any, ...]:
    listed = message.get("tool_calls")
    if listed is None:
        return ()
    if not isinstance(listed, list | tuple):
        raise FormatError(FormatFault.NOT_A_CALL, "The calls of a message are a list.")
    return listed


def _turn(content: str, calls: tuple[CheckedCall, ...], thinking: str) -> Turn:
    content = checked_text(content).strip()
    if not content and not calls:
        raise FormatError(FormatFault.EMPTY, "A turn holds a call or an answer.")
    return Turn(content, calls, checked_text(thinking, has_role_mark).strip())


def _bounded(text: object, limits: Limits) -> str:
    if not isinstance(text, str):
        raise FormatError(FormatFault.NOT_TEXT, "The turn holds what is no text.")
    if len(text) > limits.turn_chars:
        raise FormatError(FormatFault.TOO_LONG, f"A turn holds at most {limits.turn_chars} characters.")
    return text


def _count(calls: int, limits: Limits) -> None:
    if calls > limits.calls:
        raise FormatError(FormatFault.TOO_MANY_CALLS, f"A turn holds at most {limits.calls} calls.")


def _split_thinking(text: str) -> tuple[str, str]:
    """The thinking and the rest. The opening mark may be missing: the chat template writes it for some models."""
    before, closed, after = text.partition(THINK_END)
    if closed:
        return before.lstrip().removeprefix(THINK), after
    if text.lstrip().startswith(THINK):
        raise FormatError(FormatFault.UNCLOSED_THINKING, "The thinking has no end.")
    return "", text


def _inside(block: str) -> str:
    """The text between the marks of a call; `block` starts after the opening one."""
    inside, closed, after = block.partition(CALL_END)
    if not closed:
        raise FormatError(FormatFault.UNCLOSED_CALL, "A call has no end, or holds another call.")
    if after.strip():
        raise FormatError(FormatFault.TEXT_AFTER_CALL, "Words stand before the calls, never behind one.")
    return inside
