"""How the simulated user of a row words what it says: by the phrases of the row's own template."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rc1_lib.pool.templates import Pack
from rc1_lib.records import Language

UNSURE: dict[Language, str] = {"en": "I do not know that.", "zh": "这个我不知道。"}
"""Said where something is missing, but something else was asked for."""
_GIVES: dict[Language, str] = {"en": "It is {value}.", "zh": "是{value}。"}
_NOTHING_MISSING: dict[Language, str] = {"en": "Nothing is missing.", "zh": "没有遗漏。"}


@dataclass(frozen=True, slots=True)
class Voice:
    """The three things that a user can say.

    Attributes:
        gives: the sentence with the missing piece; empty where nothing is missing.
        nothing_missing: said to any question where nothing is missing.
        unsure: said where something is missing, but something else was asked for.
    """

    gives: str
    nothing_missing: str
    unsure: str


def plain_voice(row: Mapping[str, Any]) -> Voice:
    """The voice of a user without a template."""
    lang: Language = row["lang"]
    return _voice(row, (_GIVES[lang],), (_NOTHING_MISSING[lang],))


class Voices:
    """The voices of rows that were worded by one pack of templates.

    A row's user always uses the same phrase of its template: the one that stands in the row's own dialogue where that
    asks, else one picked by the row's id. Rows of other templates are answered in the plain voice.
    """

    def __init__(self, pack: Pack) -> None:
        self._templates = {template.id: template for template in pack.templates}

    def __call__(self, row: Mapping[str, Any]) -> Voice:
        """The voice of the user of `row`."""
        template = self._templates.get(row.get("template_id") or "")
        if template is None:
            return plain_voice(row)
        return _voice(row, template.reply, template.nothing_missing)


def _voice(row: Mapping[str, Any], reply: Sequence[str], nothing_missing: Sequence[str]) -> Voice:
    slot = row.get("slot") if row["needs_clarification"] else None
    heard = _heard(row)
    gives = [phrase.format(value=slot["value"]) for phrase in reply] if slot else [""]
    return Voice(_pick(gives, heard, row), _pick(nothing_missing, heard, row), UNSURE[row["lang"]])


def _heard(row: Mapping[str, Any]) -> frozenset[str]:
    """What the user said in the row's own dialogue."""
    return frozenset(message["content"] for message in row["messages"] if message.get("name") == "ask_user")


def _pick(phrases: Sequence[str], heard: frozenset[str], row: Mapping[str, Any]) -> str:
    spoken = [phrase for phrase in phrases if phrase in heard]
    number = int.from_bytes(hashlib.sha256(str(row["id"]).encode()).digest()[:4], "big")
    return spoken[0] if spoken else phrases[number % len(phrases)]
