"""Quirks of real providers: parameters they refuse, how they say how long to wait, where they put the reply."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any


class Manner(StrEnum):
    """A provider's quirk; several may be combined. Only the `WAIT_*` ones and `MODELS_IN_TURN` apply to Gemini too."""

    NO_TEMPERATURE = "no_temperature"
    """400 for `temperature`, as with reasoning models."""
    NO_TOP_P = "no_top_p"
    """400 for `top_p`."""
    NO_PAIR = "no_pair"
    """400 for `temperature` together with `top_p`."""
    COMPLETION_TOKENS = "completion_tokens"
    """400 for `max_tokens`; `max_completion_tokens` is accepted."""
    MAX_TOKENS_ONLY = "max_tokens_only"
    """400 for `max_completion_tokens`."""
    NO_SCHEMA = "no_schema"
    """400 for `response_format`."""
    NO_TOOLS = "no_tools"
    """400 for `tools`."""
    NO_SYSTEM = "no_system"
    """400 for a system message."""
    WAIT_IN_RESET = "wait_in_reset"
    """A 429 says how long to wait only in `x-ratelimit-reset-requests`."""
    WAIT_IN_MS = "wait_in_ms"
    """A 429 says how long to wait only in `retry-after-ms`."""
    MODELS_IN_TURN = "models_in_turn"
    """Two model versions answer in turn."""
    THINK_TAGS = "think_tags"
    """Thinking between tags, with a decoy, comes before the reply."""
    THINK_END = "think_end"
    """Like `THINK_TAGS`, without the opening tag."""
    JSON_IN_THOUGHTS = "json_in_thoughts"
    """The reply is in `reasoning_content`, and the content is empty."""
    THOUGHTS_ALONE = "thoughts_alone"
    """The model thinks, and its content is empty."""
    BLANK = "blank"
    """The content is empty."""
    FENCE = "fence"
    """The reply is in a fence, on one line."""
    WORDS = "words"
    """The reply is between words."""
    TWICE = "twice"
    """Two different replies, so that neither counts."""
    BOM = "bom"
    """The reply begins with a byte-order mark."""
    TOOL_CALL = "tool_call"
    """The reply is a tool call even if none was asked for."""
    CUT_OFF = "cut_off"
    """Half of the reply, reported as complete."""


_REFUSED: Mapping[Manner, tuple[str, str, Callable[[Mapping[str, Any]], bool]]] = {
    Manner.NO_TEMPERATURE: (
        "temperature", "Unsupported value: 'temperature' does not support it with this model. Only the default is.",
        lambda body: "temperature" in body,
    ),
    Manner.NO_TOP_P: ("top_p", "Unsupported parameter: 'top_p'.", lambda body: "top_p" in body),
    Manner.NO_PAIR: (
        "", "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        lambda body: "temperature" in body and "top_p" in body,
    ),
    Manner.COMPLETION_TOKENS: (
        "max_tokens", "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body,
    ),
    Manner.MAX_TOKENS_ONLY: (
        "", "Extra inputs are not permitted: max_completion_tokens", lambda body: "max_completion_tokens" in body,
    ),
    Manner.NO_SCHEMA: ("", "This response_format type is unavailable now", lambda body: "response_format" in body),
    Manner.NO_TOOLS: ("", "Forced tool choice is not supported by this model.", lambda body: "tools" in body),
    Manner.NO_SYSTEM: (
        "", "System role not supported",
        lambda body: any(message.get("role") == "system" for message in body["messages"]),
    ),
}  # fmt: skip


def unfit(manners: Collection[Manner], body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the parameter (empty if not named) and the message with which a server refuses a request, or None."""
    refused = [(param, text) for manner, (param, text, has) in _REFUSED.items() if manner in manners and has(body)]
    return refused[0] if refused else None


def message_of(manners: Collection[Manner], text: str, thoughts: str, decoy: str) -> dict[str, Any]:
    """Build the assistant message of a reply, as a server with these quirks sends it.

    Args:
        manners: the server's quirks.
        text: the reply.
        thoughts: the model's thoughts before it; empty for a model that does not think.
        decoy: thinking that contains other grades.
    """
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if thoughts:
        message |= {"content": f"<think>\n{thoughts}\n</think>\n\n{text}", "reasoning_content": thoughts}
    for manner in manners:
        match manner:
            case Manner.THINK_TAGS:
                message["content"] = f"<think>\n{decoy}\n</think>\n{text}"
            case Manner.THINK_END:
                message["content"] = f"{decoy}\n</think>\n{text}"
            case Manner.JSON_IN_THOUGHTS:
                message |= {"content": None, "reasoning_content": text}
            case Manner.THOUGHTS_ALONE:
                message |= {"content": "", "reasoning_content": decoy}
            case Manner.BLANK:
                message["content"] = ""
            case Manner.FENCE:
                message["content"] = f"~~~JSON {text} ~~~"
            case Manner.WORDS:
                message["content"] = f"Here are my grades:\n{text}\nI hope that this helps."
            case Manner.TWICE:
                message["content"] = f"{text}\nor rather\n{decoy}"
            case Manner.BOM:
                message["content"] = f"\ufeff{text}"
            case Manner.CUT_OFF:
                message["content"] = text[: len(text) // 2]
            case Manner.TOOL_CALL:
                call = {"id": "call_1", "type": "function", "function": {"name": "grades", "arguments": text}}
                message |= {"content": None, "tool_calls": [call]}
    return message


def wait_of(manners: Collection[Manner], wait: float) -> dict[str, str]:
    """Return the headers of a 429 that ask to wait for `wait` seconds."""
    if Manner.WAIT_IN_RESET in manners:
        return {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{wait:g}s"}
    if Manner.WAIT_IN_MS in manners:
        return {"retry-after-ms": f"{1000 * wait:g}"}
    return {"Retry-After": f"{wait:.15g}"}


def tool_asked(body: Mapping[str, Any]) -> Any:
    """Return the schema of the first tool that a request offers; None without tools."""
    match body.get("tools"):
        case [{"function": {"parameters": dict() as schema}}, *_]:
            return schema
    return None
