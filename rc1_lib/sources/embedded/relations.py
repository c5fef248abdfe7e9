"""Relations: what can be stated about an entity, and what it leads to.

The relations are in `words/relations.yaml`, their wordings in `words/<language>/facts.yaml` under the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rc1_lib.errors import SourceError
from rc1_lib.sources.embedded.word_files import Entry, open_words

KINDS = ("person", "town", "river", "ship", "book", "guild", "work")
WORD_LISTS = ("trades", "likings", "wares", "stones", "fishes", "topics", "badges")


@dataclass(frozen=True, slots=True)
class Relation:
    """One kind of fact.

    Attributes:
        subject: the kind of entity whose page states it.
        other: the kind of entity or the word list that it leads to; empty if it leads to neither.
        low: the smallest number that it may state.
        high: the largest number; 0 if it states none.
    """

    subject: str
    other: str = ""
    low: int = 0
    high: int = 0

    @property
    def slots(self) -> str:
        """The slots of its sentences: `s` the subject, `o` the other entity, `n` the number."""
        return "s" + "o" * bool(self.other) + "n" * bool(self.high)


@dataclass(frozen=True, slots=True)
class Relations:
    """All relations by name, and for each kind of entity those that may be stated in addition to the needed facts."""

    by_name: Mapping[str, Relation]
    beside: Mapping[str, tuple[str, ...]]


@cache
def relations() -> Relations:
    """Read `words/relations.yaml`.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    by_name: dict[str, Relation] = {}
    beside: dict[str, tuple[str, ...]] = {}
    for kind, entry in open_words("relations").fields(KINDS).items():
        parts = entry.fields(("facts", "beside"))
        facts = parts["facts"]
        own = {name: _relation(kind, fact) for name, fact in facts.fields(facts.keys()).items()}
        for name in own.keys() & by_name.keys():
            raise SourceError(f"{entry.file}: the key '{facts.place}.{name}' is taken by another kind; rename it")
        by_name |= own
        beside[kind] = tuple(item.one_of(own) for item in parts["beside"].items())
    return Relations(by_name, beside)


def _relation(kind: str, entry: Entry) -> Relation:
    fields = entry.fields((), ("to", "least", "most"))
    other = fields["to"].one_of((*KINDS, *WORD_LISTS)) if "to" in fields else ""
    if "least" not in fields and "most" not in fields:
        return Relation(kind, other)
    bounds = entry.fields(("least", "most"), ("to",))
    low, high = bounds["least"].number(), bounds["most"].number()
    if not 0 < low < high:
        raise entry.fault("numbers above 0, `least` below `most`")
    return Relation(kind, other, low, high)
