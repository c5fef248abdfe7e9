"""Faults of rows that fit the schema but contradict themselves, their source or the environment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of inconsistencies, as reports name them."""

    MARK = "a mark of the chat format"
    """Training would take it for the chat template's own mark, and the policy would learn to write it."""
    TURN = "a turn that the world refuses"
    """It is empty, malformed, without its results or after the dialogue's end, or a result without a call."""
    RESULT = "a tool result that this environment would not return"
    """The result of a tool call or of a sum in the closing reason, or the user's reply."""
    OUTCOME = "an outcome that a replay does not confirm"
    """`final`, `solved`, `lucky`, `asked`."""
    WORDS = "words that the builder would not write"
    """Text of the system, user or assistant message that comes neither from template, question nor evidence."""
    LABEL = "a label that is not the row's"
    """Language, role, style, template."""
    SOURCE = "another question than the source's"
    """Gold answer, wording, evidence, pages."""


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """One inconsistency.

    Attributes:
        where: the place in the row, such as `messages[3].content`.
        found: the value there.
        expected: the correct value.
    """

    kind: Kind
    where: str
    found: str
    expected: str
