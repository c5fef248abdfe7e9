"""One tool call as a model writes it, checked strictly, since a model's text is untrusted input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

import orjson

from rc1_lib.environment.limits import Limits
from rc1_lib.environment.markers import has_marker
from rc1_lib.rows.chat import ARGUMENT_OF

_HALF_PAIR = re.compile("[\ud800-\udfff]")


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
        sentence: the error in words that may be shown to the model; they never repeat what the model wrote.
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
        """The arguments as JSON, as the pool writes them."""
        return orjson.dumps({ARGUMENT_OF[self.tool]: self.argument}).decode()


def call_of_json(text: str, limits: Limits) -> CheckedCall:
    """The call in one `<tool_call>` block: `{"name": ..., "arguments": {...}}` and nothing else.

    Raises:
        FormatError: for anything else.
    """
    body = _json(text)
    if not isinstance(body, dict) or set(body) != {"name", "arguments"}:
        raise FormatError(FormatFault.NOT_A_CALL, 'A call is {"name": ..., "arguments": {...}} and nothing else.')
    return checked_call(body["name"], body["arguments"], limits)


def call_of_message(entry: object, limits: Limits) -> CheckedCall:
    """The call in one entry of `tool_calls`: `{"function": {"name", "arguments"}}`, the arguments as JSON or as a dict.

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
    """The call of `tool` with exactly one argument, a text within the limits and without forged markers.

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
    """The argument itself.

    Raises:
        FormatError: when it is too long, not Unicode text, or contains a mark of the chat template.
    """
    if len(argument) > limits.argument_chars:
        raise FormatError(FormatFault.HUGE_ARGUMENT, f"An argument holds at most {limits.argument_chars} characters.")
    return checked_text(argument)


def checked_text(text: object, forged: Callable[[str], bool] = has_marker) -> str:
    """`text`, if it is a valid text.

    Raises:
        FormatError: when it is not text, or contains half of a surrogate pair or a mark that `forged` finds.
    """
    if not isinstance(text, str) or _HALF_PAIR.search(text):
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
        # ValueError: also for a repeated key, NaN or infinity, or a number with more digits than Python converts.
        raise FormatError(FormatFault.NOT_JSON, "A call is one JSON object, every key once.") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_reject_constant)
