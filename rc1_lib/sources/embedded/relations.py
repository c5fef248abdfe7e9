"""What can be told of an entity: the relations, whom they are about, and what they lead to.

The wording of each relation stands in `en_facts` and `zh_facts`, under the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """One kind of fact.

    Attributes:
        subject: the kind of the entity whose page tells it.
        other: the kind of the entity, or the word list, that it leads to; empty where it leads to none.
        low: the least number that it may tell.
        high: the greatest number; 0 where it tells no number.
    """

    subject: str
    other: str = ""
    low: int = 0
    high: int = 0


RELATIONS: Mapping[str, Relation] = {
    "born": Relation("person", "town"),
    "home": Relation("person", "town"),
    "teacher": Relation("person", "person"),
    "spouse": Relation("person", "person"),
    "guild": Relation("person", "guild"),
    "birth": Relation("person", low=100, high=899),
    "died": Relation("person", low=150, high=980),
    "trade": Relation("person", "trades"),
    "habit": Relation("person", "likings"),
    "wage": Relation("person", low=3, high=60),
    "pace": Relation("person", low=8, high=60),
    "cart": Relation("person", low=40, high=900),
    "river": Relation("town", "river"),
    "founder": Relation("town", "person"),
    "people": Relation("town", low=100, high=999),
    "founded": Relation("town", low=100, high=899),
    "council": Relation("town", "guild"),
    "market": Relation("town", "wares"),
    "walls": Relation("town", "stones"),
    "road": Relation("town", "town", 15, 600),
    "fair": Relation("town", low=5, high=300),
    "fair_end": Relation("town", low=5, high=330),
    "store": Relation("town", low=40, high=950),
    "need": Relation("town", low=2, high=60),
    "vote": Relation("town"),
    "mouth": Relation("river", "town"),
    "source": Relation("river", "town"),
    "ferry": Relation("river", "person"),
    "miles": Relation("river", low=20, high=900),
    "fish": Relation("river", "fishes"),
    "captain": Relation("ship", "person"),
    "owner": Relation("ship", "person"),
    "yard": Relation("ship", "town"),
    "port": Relation("ship", "town"),
    "rule": Relation("ship", "guild"),
    "length": Relation("ship", low=20, high=240),
    "launched": Relation("ship", low=200, high=990),
    "mast": Relation("ship", low=15, high=180),
    "freight": Relation("ship", "wares"),
    "author": Relation("book", "person"),
    "keeper": Relation("book", "person"),
    "shelf": Relation("book", "town"),
    "pages": Relation("book", low=40, high=980),
    "written": Relation("book", low=200, high=990),
    "price": Relation("book", low=20, high=600),
    "topic": Relation("book", "topics"),
    "seat": Relation("guild", "town"),
    "head": Relation("guild", "person"),
    "starter": Relation("guild", "person"),
    "members": Relation("guild", low=12, high=600),
    "opened": Relation("guild", low=100, high=899),
    "badge": Relation("guild", "badges"),
    "builder": Relation("work", "person"),
    "warden": Relation("work", "person"),
    "stands": Relation("work", "town"),
    "height": Relation("work", low=20, high=300),
    "built": Relation("work", low=200, high=990),
    "arch": Relation("work", low=15, high=180),
    "bell": Relation("work", low=40, high=900),
    "seats": Relation("work", low=12, high=600),
    "stone": Relation("work", "stones"),
}

# Told beside the needed facts. No years: a page must not contradict what is reckoned from another page.
FILLERS: Mapping[str, tuple[str, ...]] = {
    "person": ("home", "spouse", "guild", "trade", "habit", "trade", "habit"),
    "town": ("market", "walls", "council", "people"),
    "river": ("ferry", "fish", "source", "miles"),
    "ship": ("freight", "owner", "port", "length", "freight"),
    "book": ("topic", "shelf", "keeper", "pages", "topic"),
    "guild": ("badge", "head", "members", "badge"),
    "work": ("stone", "warden", "stands", "stone"),
}
