"""Marks that a chat template uses for roles and tools; inside a text they are never trusted."""

from __future__ import annotations

import re

CALL, CALL_END = "<tool_call>", "</tool_call>"
THINK, THINK_END = "<think>", "</think>"
TURN_ENDS = ("<|im_end|>", "<|endoftext|>")
"""The end marks of a turn in Qwen3's chat format; a turn may end with one of them."""

_ROLE_MARK = re.compile(r"<\|\w{1,40}\|>")
MARKER_PATTERN = r"<(\|\w{1,40}\|>|/?(?:tool_call|tool_response|tools|think)>)"
"""Matches marks that a chat template could take for its own; for Python and polars."""
_MARKER = re.compile(MARKER_PATTERN)


def has_role_mark(text: str) -> bool:
    """Return whether `text` contains a mark such as `<|im_start|>`, with which a turn could be forged."""
    return _ROLE_MARK.search(text) is not None


def has_marker(text: str) -> bool:
    """Return whether `text` contains a mark that a chat template could take for its own."""
    return _MARKER.search(text) is not None


def defused(text: str) -> str:
    """Insert a space into every mark in `text`, and replace everything that is not valid Unicode."""
    plain = text.encode("utf-8", errors="replace").decode("utf-8")
    return _MARKER.sub(r"< \1", plain)
