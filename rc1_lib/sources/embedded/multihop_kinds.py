"""The kinds of multi-hop questions and their wordings, from `words/multihop.yaml` and `words/<lang>/multihop.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rc1_lib.records import Language
from rc1_lib.sources.embedded.lexicon import Wordings
from rc1_lib.sources.embedded.relations import Relation, relations
from rc1_lib.sources.embedded.word_files import Entry, open_words

_ASKS = ("least", "most", "difference")


@dataclass(frozen=True, slots=True)
class Chain:
    """Relations to follow one after another, and two relations that the question states about the first entity."""

    hops: tuple[str, ...]
    beside: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A comparison of two entities by `number`, or of those that `hop` leads to from them.

    `asks` is "least" or "most" if the entity with that number is the answer, and "difference" if the difference is.
    """

    number: str
    beside: str
    asks: str
    hop: str = ""


@dataclass(frozen=True, slots=True)
class Kinds:
    """All kinds by name, in the order in which they are drawn."""

    chains: Mapping[str, Chain]
    contrasts: Mapping[str, Contrast]


@cache
def kinds() -> Kinds:
    """Read `words/multihop.yaml`.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    parts = open_words("multihop").fields(("chains", "contrasts"))
    chains, contrasts = (parts[name].fields(parts[name].keys()) for name in ("chains", "contrasts"))
    return Kinds(
        {key: _chain(entry) for key, entry in chains.items()},
        {key: _contrast(entry) for key, entry in contrasts.items()},
    )


@cache
def wordings(lang: Language) -> Wordings:
    """Read the wordings of every kind from `words/<lang>/multihop.yaml`.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    parts = open_words(f"{lang}/multihop").fields(("chains", "contrasts"))
    chains = {key: lines.texts("axy") for key, lines in parts["chains"].fields(kinds().chains).items()}
    return chains | {key: lines.texts("abxy") for key, lines in parts["contrasts"].fields(kinds().contrasts).items()}


def _chain(entry: Entry) -> Chain:
    """Read a chain; each hop must start where the previous one leads."""
    fields = entry.fields(("hops", "beside"))
    hops = fields["hops"].items()
    start = _relation_at(hops[0])[1].subject
    names, at = [], start
    for item in hops:
        name, relation = _relation_at(item, at)
        names.append(name)
        at = relation.other
    beside = tuple(_relation_at(item, start)[0] for item in fields["beside"].items())
    if len(beside) != 2:
        raise fields["beside"].fault("two relations")
    return Chain(tuple(names), (beside[0], beside[1]))


def _contrast(entry: Entry) -> Contrast:
    """Read a contrast; its hop must lead to the kind of entity that has the number."""
    fields = entry.fields(("number", "beside", "asks"), ("hop",))
    number, relation = _relation_at(fields["number"])
    if not relation.high:
        raise fields["number"].fault("a relation with a number")
    hop, start = "", relation.subject
    if "hop" in fields:
        hop, leading = _relation_at(fields["hop"])
        start = leading.subject
        if leading.other != relation.subject:
            raise fields["hop"].fault(f"a relation that leads to a {relation.subject}")
    return Contrast(number, _relation_at(fields["beside"], start)[0], fields["asks"].one_of(_ASKS), hop)


def _relation_at(entry: Entry, subject: str = "") -> tuple[str, Relation]:
    """Read a relation that leads to an entity or has a number, and is about `subject` if that is given."""
    known = relations().by_name
    name = entry.one_of([key for key, spec in known.items() if spec.slots != "s" and subject in ("", spec.subject)])
    return name, known[name]
