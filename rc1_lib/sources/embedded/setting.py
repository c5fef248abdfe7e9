"""What defines a kind of yes/no question: how its world is drawn, and what can be withheld."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.scene import Scene


@dataclass(frozen=True, slots=True)
class Setting:
    """A drawn world: `fields` fill the question's wording, `slots` maps entities that can be withheld to their kind."""

    fields: Mapping[str, str | int]
    slots: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of yes/no question.

    Attributes:
        slots: the slots of its wordings, one letter each.
        draw: draws a world in which the verdict holds, with a field for each slot.
    """

    slots: str
    draw: Callable[[Scene, Draft, bool], Setting]
