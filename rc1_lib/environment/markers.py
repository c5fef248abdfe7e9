"""Marks by which a chat template tells roles and tools apart; who writes them into a text must not be believed."""

from __future__ import annotations

import re

CALL, CALL_END = "<tool_call>", "</tool_call>"
THINK, THINK_END = "<think>", "</think>"
TURN_ENDS = ("<|im_end|>", "<|endoftext|>")
"""What ends a model's turn in Qwen3's chat form; one of them may stand at the very end."""

_ROLE_MARK = re.compile(r"<\|\w{1,40}\|>")
MARKER_PATTERN = r"<(\|\w{1,40}\|>|/?(?:tool_call|tool_response|tools|think)>)"
"""A mark that a chat template could take for its own, as Python and polars read it."""
_MARKER = re.compile(MARKER_PATTERN)


def has_role_mark(text: str) -> bool:
    """Whether `text` holds a mark such as `<|im_start|>`, with which another's turn could be forged."""
    return _ROLE_MARK.search(text) is not None


def has_marker(text: str) -> bool:
    """Whether `text` holds a mark that a chat template could take for its own."""
    return _MARKER.search(text) is not None


def defused(text: str) -> str:
    """`text` with a space inside every mark, and whatever is no Unicode text replaced, so that it is only text."""
    plain = text.encode("utf-8", errors="replace").decode("utf-8")
    return _MARKER.sub(r"< \1", plain)
