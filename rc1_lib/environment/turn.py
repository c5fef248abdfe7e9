"""The limits of an episode, and the parser of a model's turn: its words and calls, or why it is malformed.

A turn has one of two forms: Qwen3's text, which is `words <tool_call>{"name": ..., "arguments": {...}}</tool_call> ...`
after one block of thinking, or a message with parsed `tool_calls`. A model's text is untrusted input, so every call is
checked strictly: one bad call makes the whole turn malformed, and none of its calls is run. Calls inside the thinking
are ignored. Parsing takes time linear in the length of the turn, which is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NoReturn

import orjson

from rc1_lib.config.episodes import EpisodeLimits
from rc1_lib.environment.markers import CALL, CALL_END, THINK, THINK_END, TURN_ENDS, has_marker, has_role_mark
from rc1_lib.rows.chat import ARGUMENT_OF

TOOL_ERRORS = 2
"""Failed tool calls allowed: a typing error or two should not end a dialogue."""
MALFORMED = 1
"""Malformed turns allowed: the first is answered with the reason, so that the policy can learn from it."""
CALLS = 5
"""Most tool calls in one turn: every demonstrated turn has fewer, and more would be a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one episode.

    Attributes:
        turns: most messages of the model, including the final answer.
        tokens: most tokens of the model's messages and all observations together, without the prompt.
        tool_errors: failed tool calls allowed; one more ends the episode.
        malformed: malformed turns allowed; one more ends the episode.
        calls: most tool calls in one turn.
        turn_chars: most characters in one turn; longer turns are not parsed.
        argument_chars: most characters in one argument.
    """

    turns: int
    tokens: int
    tool_errors: int = TOOL_ERRORS
    malformed: int = MALFORMED
    calls: int = CALLS
    turn_chars: int
    argument_chars: int

    @classmethod
    def of(cls, section: EpisodeLimits) -> Limits:
        """Read the bounds in the section `training.limits` of a configuration; the others have their defaults."""
        return cls(**section.model_dump())

    def __post_init__(self) -> None:
        """Reject bounds with which no turn would be possible."""
        for field in fields(self):
            least = 0 if field.name in {"tool_errors", "malformed"} else 1
            if getattr(self, field.name) < least:
                raise ValueError(f"limit '{field.name}' is {getattr(self, field.name)}; expected at least {least}")


_SURROGATE = re.compile("[\ud800-\udfff]")


class FormatFault(StrEnum):
    """Why a turn is malformed."""

    EMPTY = "empty"
    TOO_LONG = "too long"
    NOT_TEXT = "not text"
    FORGED_MARKER = "forged marker"
    UNCLOSED_THINKING = "unclosed thinking"
    UNCLOSED_CALL = "unclosed call"
    TEXT_AFTER_CALL = "text after a call"
    TOO_MANY_CALLS = "too many calls"
    NOT_JSON = "not JSON"
    NOT_A_CALL = "not a call"
    UNKNOWN_TOOL = "unknown tool"
    WRONG_ARGUMENTS = "wrong arguments"
    HUGE_ARGUMENT = "huge argument"


class FormatError(ValueError):
    """A malformed turn.

    Attributes:
        fault: the kind of error.
        sentence: a message that may be shown to the model; it never repeats what the model wrote.
    """

    def __init__(self, fault: FormatFault, sentence: str) -> None:
        super().__init__(sentence)
        self.fault = fault
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A valid call: one of the three tools, and its argument."""

    tool: str
    argument: str

    @property
    def arguments(self) -> str:
        """The arguments as JSON, in the pool's spelling."""
        return orjson.dumps({ARGUMENT_OF[self.tool]: self.argument}).decode()


def call_of_json(text: str, limits: Limits) -> CheckedCall:
    """Parse the content of one `<tool_call>` block: `{"name": ..., "arguments": {...}}` and nothing else.

    Raises:
        FormatError: for anything else.
    """
    body = _json(text)
    if not isinstance(body, dict) or set(body) != {"name", "arguments"}:
        raise FormatError(FormatFault.NOT_A_CALL, 'A call is {"name": ..., "arguments": {...}} and nothing else.')
    return checked_call(body["name"], body["arguments"], limits)


def call_of_message(entry: object, limits: Limits) -> CheckedCall:
    """Parse one entry of `tool_calls`: `{"function": {"name", "arguments"}}`, with the arguments as JSON or as a dict.

    Raises:
        FormatError: for anything else.
    """
    function = entry.get("function") if isinstance(entry, Mapping) else None
    if not isinstance(function, Mapping) or not {"name", "arguments"} <= set(function):
        raise FormatError(FormatFault.NOT_A_CALL, "A call holds a function with a name and arguments.")
    arguments = function["arguments"]
    if isinstance(arguments, str):
        if len(arguments) > limits.turn_chars:
            raise FormatError(
                FormatFault.HUGE_ARGUMENT, f"An argument holds at most {limits.argument_chars} characters."
            )
        arguments = _json(arguments)
    return checked_call(function["name"], arguments, limits)


def checked_call(tool: object, arguments: object, limits: Limits) -> CheckedCall:
    """Return a call of `tool` with exactly one argument, a text within the limits and without forged markers.

    Raises:
        FormatError: for anything else.
    """
    if not isinstance(tool, str) or tool not in ARGUMENT_OF:
        raise FormatError(FormatFault.UNKNOWN_TOOL, f"There is no such tool; the tools are {', '.join(ARGUMENT_OF)}.")
    name = ARGUMENT_OF[tool]
    if not isinstance(arguments, Mapping) or len(arguments) != 1 or not isinstance(arguments.get(name), str):
        raise FormatError(FormatFault.WRONG_ARGUMENTS, f"The tool {tool} takes one argument, the text '{name}'.")
    return CheckedCall(tool, checked_argument(arguments[name], limits))


def checked_argument(argument: str, limits: Limits) -> str:
    """Return the argument if it is valid.

    Raises:
        FormatError: when it is too long, not Unicode text, or contains a mark of the chat template.
    """
    if len(argument) > limits.argument_chars:
        raise FormatError(FormatFault.HUGE_ARGUMENT, f"An argument holds at most {limits.argument_chars} characters.")
    return checked_text(argument)


def checked_text(text: object, forged: Callable[[str], bool] = has_marker) -> str:
    """Return `text` if it is valid.

    Raises:
        FormatError: when it is not text, or contains half of a surrogate pair or a mark that `forged` finds.
    """
    if not isinstance(text, str) or _SURROGATE.search(text):
        raise FormatError(FormatFault.NOT_TEXT, "The turn holds what is no text.")
    if forged(text):
        raise FormatError(
            FormatFault.FORGED_MARKER, "The turn holds a mark of the chat format where only text may stand."
        )
    return text


def _json(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        # ValueError also means a duplicate key, NaN or infinity, or a number with more digits than Python converts.
        raise FormatError(FormatFault.NOT_JSON, "A call is one JSON object, every key once.") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_reject_constant)


@dataclass(frozen=True, slots=True)
class Turn:
    """A well-formed turn; without calls it is the final answer."""

    content: str
    calls: tuple[CheckedCall, ...]
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A malformed turn; `sentence` says why and may be shown to the model."""

    fault: FormatFault
    sentence: str


def read_text(text: object, limits: Limits) -> Turn | Malformed:
    """Parse a turn in Qwen3's chat format, with or without its end mark."""
    try:
        return _turn_of_text(_bounded(text, limits), limits)
    except FormatError as error:
        return Malformed(error.fault, error.sentence)


def read_message(message: object, limits: Limits) -> Turn | Malformed:
    """Parse a chat message with parsed `tool_calls`; call marks in its content make it malformed."""
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
    """Split off the thinking; its opening mark may be missing, since the chat template writes it for some models."""
    before, closed, after = text.partition(THINK_END)
    if closed:
        return before.lstrip().removeprefix(THINK), after
    if text.lstrip().startswith(THINK):
        raise FormatError(FormatFault.UNCLOSED_THINKING, "The thinking has no end.")
    return "", text


def _inside(block: str) -> str:
    """Return the text between the marks of a call; `block` starts after the opening mark."""
    inside, closed, after = block.partition(CALL_END)
    if not closed:
        raise FormatError(FormatFault.UNCLOSED_CALL, "A call has no end, or holds another call.")
    if after.strip():
        raise FormatError(FormatFault.TEXT_AFTER_CALL, "Words stand before the calls, never behind one.")
    return inside
