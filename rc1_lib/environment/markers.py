"""Marks that a chat template uses for roles and tools; such marks inside a text are never trusted."""

from __future__ import annotations

import re

CALL, CALL_END = "<tool_call>", "</tool_call>"
THINK, THINK_END = "<think>", "</think>"
TURN_ENDS = ("<|im_end|>", "<|endoftext|>")
"""The end marks of a model's turn in Qwen3's chat form; a turn may end with one of them."""

_ROLE_MARK = re.compile(r"<\|\w{1,40}\|>")
MARKER_PATTERN = r"<(\|\w{1,40}\|>|/?(?:tool_call|tool_response|tools|think)>)"
"""A pattern, for Python and polars, of marks that a chat template could take for its own."""
_MARKER = re.compile(MARKER_PATTERN)


def has_role_mark(text: str) -> bool:
    """Whether `text` contains a mark such as `<|im_start|>`, with which a turn could be forged."""
    return _ROLE_MARK.search(text) is not None


def has_marker(text: str) -> bool:
    """Whether `text` contains a mark that a chat template could take for its own."""
    return _MARKER.search(text) is not None


def defused(text: str) -> str:
    """`text` with a space inside every mark, and with everything that is not valid Unicode replaced."""
    plain = text.encode("utf-8", errors="replace").decode("utf-8")
    return _MARKER.sub(r"< \1", plain)
