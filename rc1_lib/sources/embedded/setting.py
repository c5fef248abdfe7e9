"""What a yes/no question says: the words for its ask, and which of them can be withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """The blanks of an ask and their texts; `slots` maps each entity that can be withheld to its kind."""

    fields: Mapping[str, str | int]
    slots: Mapping[str, str]
