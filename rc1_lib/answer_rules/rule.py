"""What a rule for answers is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

AnswerRule = Callable[[str, str, Sequence[str]], bool]
"""The answer given, the exact one and its aliases -> whether it is right."""
MAX_LENGTH = 1000
"""Characters: a number or a verdict in more than these is no answer, but a text to search for one."""
