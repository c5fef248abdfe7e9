"""What is found where a row is whole in form, but says what is not so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What of a row is not so."""

    MARK = "a mark of the chat format"
    """Training would read it as the template's own, and learn to write it."""
    TURN = "a turn that the world refuses"
    """Empty, malformed, without its results, after the end of the dialogue; or a result that nobody called for."""
    RESULT = "a tool result that this environment would not return"
    """Of a tool call, of a sum in the closing reason, or of the user."""
    OUTCOME = "an outcome that a replay does not confirm"
    """`final`, `solved`, `lucky`, `asked`."""
    WORDS = "words that the builder would not write"
    """Of the system, the user's prompt or the assistant, beyond template, question and evidence."""
    LABEL = "a label that is not the row's"
    """Language, role, style, template."""
    SOURCE = "another question than the source's"
    """Its gold answer, its wording, its evidence, its pages."""


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """One thing that is not so.

    Attributes:
        kind: what it is.
        where: the place in the row, such as `messages[3].content`.
        found: what is there.
        expected: what would be true.
    """

    kind: Kind
    where: str
    found: str
    expected: str
