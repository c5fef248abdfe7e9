"""The kinds of yes/no questions: how each world is drawn, how its question reads, and what can be withheld."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.scene import Scene


@dataclass(frozen=True, slots=True)
class Setting:
    """The blanks of an ask and their texts; `slots` maps each entity that can be withheld to its kind."""

    fields: Mapping[str, str | int]
    slots: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of yes/no question.

    Attributes:
        slots: the slots of its wordings, each a letter; `draw` has a text for each of them.
        draw: makes a world that fits the verdict.
    """

    slots: str
    draw: Callable[[Scene, Draft, bool], Setting]
