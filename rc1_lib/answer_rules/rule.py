"""The type of an answer rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

AnswerRule = Callable[[str, str, Sequence[str]], bool]
"""(given answer, exact answer, aliases) -> whether it is right."""
MAX_LENGTH = 1000
"""In characters: a longer text is not a number or a verdict, but a text to search for one."""
