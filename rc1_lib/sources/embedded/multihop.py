"""HotpotQA-style questions: chains of two to four pages, and comparisons of two entities.

A chain starts at the entity that the question names and follows one relation per page. The question also states two
facts about that entity (`beside`), which identify it but do not lead to the answer. The kinds are in
`words/multihop.yaml`, their wordings in `words/<language>/multihop.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rc1_lib.records import Language, Question
from rc1_lib.sources.embedded.form import Asks, Form, Leg, Start
from rc1_lib.sources.embedded.lexicon import Wordings
from rc1_lib.sources.embedded.lookups import Lookups
from rc1_lib.sources.embedded.relations import Relation, relations
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.word_files import Entry, open_words

_CHAIN_SHARE = 0.64
_GAP = 0.12
"""Largest distance of two compared numbers, as a share of what they are drawn from: knowing one must not tell which of
the two is larger."""


def multihop(scene: Scene) -> Question | None:
    """Return one multi-hop question, or None if this scene's names clash."""
    chained = scene.chance(_CHAIN_SHARE)
    key, form = scene.pick([item for item in forms().items() if (item[1].asks == "leaf") == chained])
    lookups = Lookups(scene, form, _numbers(scene, form))
    return lookups.question(scene.pick(wordings(scene.lexicon.lang)[key]))


def _numbers(scene: Scene, form: Form) -> list[int | None]:
    """Draw the two numbers of a comparison, close to each other; either is the larger one equally often."""
    if form.asks == "leaf":
        return [None]
    relation = relations().by_name[form.legs[0].path[-1]]
    most = max(2, int(_GAP * (relation.high - relation.low)))
    gap = scene.number(1, most) * (1 if scene.chance(0.5) else -1)
    first = scene.number(relation.low + most, relation.high - most)
    return [first, first + gap]


# The kinds of multi-hop questions and their wordings, from `words/multihop.yaml` and `words/<lang>/multihop.yaml`.

_ASKS = ("least", "most", "difference")


@cache
def forms() -> Mapping[str, Form]:
    """Read `words/multihop.yaml`: all kinds by name, in the order in which they are drawn.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    parts = open_words("multihop").fields(("chains", "contrasts"))
    chains, contrasts = (parts[name].fields(parts[name].keys()) for name in ("chains", "contrasts"))
    return {key: _chain(entry) for key, entry in chains.items()} | {
        key: _contrast(entry) for key, entry in contrasts.items()
    }


@cache
def wordings(lang: Language) -> Wordings:
    """Read the wordings of every kind from `words/<lang>/multihop.yaml`.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    parts = open_words(f"{lang}/multihop").fields(("chains", "contrasts"))
    found: dict[str, tuple[str, ...]] = {}
    for name, chained in (("chains", True), ("contrasts", False)):
        wanted = {key: form for key, form in forms().items() if (form.asks == "leaf") == chained}
        found |= {key: lines.texts(wanted[key].slots) for key, lines in parts[name].fields(wanted).items()}
    return found


def _chain(entry: Entry) -> Form:
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
    stated = dict(zip(beside, "xy", strict=True))
    return Form("hotpotqa", {"a": Start(start, stated)}, (Leg("a", tuple(names)),), "leaf")


def _contrast(entry: Entry) -> Form:
    """Read a contrast; its hop must lead to the kind of entity that has the number."""
    fields = entry.fields(("number", "beside", "asks"), ("hop",))
    number, relation = _relation_at(fields["number"])
    if not relation.high:
        raise fields["number"].fault("a relation with a number")
    path: tuple[str, ...] = (number,)
    start = relation.subject
    if "hop" in fields:
        hop, leading = _relation_at(fields["hop"])
        path, start = (hop, number), leading.subject
        if leading.other != relation.subject:
            raise fields["hop"].fault(f"a relation that leads to a {relation.subject}")
    beside = _relation_at(fields["beside"], start)[0]
    starts = {letter: Start(start, {beside: stated}) for letter, stated in ("ax", "by")}
    asks: Asks = fields["asks"].one_of(_ASKS)  # type: ignore[assignment]
    return Form("hotpotqa", starts, (Leg("a", path), Leg("b", path)), asks)


def _relation_at(entry: Entry, subject: str = "") -> tuple[str, Relation]:
    """Read a relation that leads to an entity or has a number, and is about `subject` if that is given."""
    known = relations().by_name
    name = entry.one_of([key for key, spec in known.items() if spec.slots != "s" and subject in ("", spec.subject)])
    return name, known[name]
