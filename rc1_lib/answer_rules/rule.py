"""The type of an answer rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

AnswerRule = Callable[[str, str, Sequence[str]], bool]
"""Takes (given answer, exact answer, aliases) and says whether the given answer is right."""
MAX_LENGTH = 1000
"""Characters of the longest text that is read as a number or a verdict; a longer one is rejected."""
