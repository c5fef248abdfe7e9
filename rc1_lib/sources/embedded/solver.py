"""Which answers a row of the embedded worlds allows, worked out exactly from its own text.

A row needs a clarification exactly if several answers are possible given all that can be reached from its prompt. The
solver reads the question and the facts with the sentences of the word files and knows nothing of how the row was made:
text in, answers out. A thing that the question only describes is any that fits the description; if nothing that can be
reached fits, it may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from rc1_lib.records import Language, Row
from rc1_lib.rows.closure import Closure
from rc1_lib.sources.embedded.form import Form, Leaf
from rc1_lib.sources.embedded.lexicon import lexicon
from rc1_lib.sources.embedded.multihop import forms
from rc1_lib.sources.embedded.multihop import wordings as multihop_wordings
from rc1_lib.sources.embedded.relations import KINDS as ENTITY_KINDS
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.story_solver import story_answers
from rc1_lib.sources.embedded.word_files import open_words
from rc1_lib.sources.embedded.yesno import KINDS
from rc1_lib.sources.embedded.yesno import wordings as yesno_wordings

Answers = frozenset[str] | None
"""The possible answers; None if there is no end of them. `OTHER` is one that no text names."""
OTHER = "?"
_GAP = ""
_SLOT = re.compile(r"\{(\w+)\}")
_Facts = Mapping[tuple[str, str], set[str]]
"""Relation and subject -> what the texts say it leads to: an entity, a number as text, or `_GAP`."""


def answers(row: Row, reach: Closure) -> Answers:
    """Return the answers that are possible given what can be reached.

    Args:
        row: a row of the embedded source.
        reach: what can be reached from its prompt, with the user's reply or without.
    """
    slot = row.get("slot")
    told = slot["value"] if slot and reach.reply and slot["value"] in reach.reply else None
    ask, texts = row["posed"]["ask"], (reach.prompt, *reach.pages.values())
    if row["task"] == "gsm8k":
        return story_answers(row["lang"], ask, texts, told)
    return lookup_answers(row["lang"], ask, texts, told)


def lookup_answers(lang: Language, ask: str, texts: Sequence[str], told: str | None = None) -> Answers:
    """Return the possible answers of a question about looked-up facts; none if it is no question of these worlds.

    Args:
        texts: all that can be read.
        told: what the user said: the name of what is meant, or what an illegible fact says.
    """
    read = _read(lang, ask)
    if read is None:
        return frozenset()
    form, fields = read
    facts = _facts(lang, "\n".join(texts), form, told)
    found: set[str] = set()
    for names in _meant(form, fields, facts, told):
        if names is None:
            return _any(form)
        found |= _possible(form, names, facts, int(fields.get("n", 0)))
    return None if _GAP in found else frozenset(found)


def _any(form: Form) -> Answers:
    return frozenset(("yes", "no")) if form.asks == "verdict" else None


def _meant(
    form: Form, fields: Mapping[str, str], facts: _Facts, told: str | None
) -> Iterator[Mapping[str, str] | None]:
    """Yield every way to understand the names of a question, as slot -> name; None if a name may be anything."""
    named = {name for _, name in facts}
    options: list[list[str]] = []
    for letter, start in form.starts.items():
        if fields[letter] != _GAP:
            options.append([fields[letter]])
            continue
        fitting = sorted(
            name
            for name in named
            if start.stated and all(fields[slot] in facts.get((fact, name), ()) for fact, slot in start.stated.items())
        )
        options.append([told] if told in fitting else fitting)
    for names in product(*options):
        yield {**fields, **dict(zip(form.starts, names, strict=True))}
    if not all(options):
        yield None


def _possible(form: Form, names: Mapping[str, str], facts: _Facts, number: int) -> set[str]:
    """Return the answers that are possible if the question means `names`; `_GAP` among them if there is no end."""
    legs = [list(_followed(names[leg.start], leg.path, facts)) for leg in form.legs]
    found: set[str] = set()
    for walked in product(*legs):
        ends, leaves = [end for end, _ in walked], [leaf for _, leaf in walked]
        if None not in leaves:
            found.add(form.answer(ends, [leaf for leaf in leaves if leaf is not None], number, names))
        elif form.asks == "verdict":
            found |= {"yes", "no"}
        elif form.asks in ("least", "most"):
            found |= {end or OTHER for end in ends}
        else:
            found.add(_GAP)
    return found


def _followed(at: str, path: Sequence[str], facts: _Facts) -> Iterator[tuple[str, Leaf | None]]:
    """Yield where a leg may end: the entity with its leaf, and the leaf; what no text tells is empty or None."""
    relation, *rest = path
    values = facts.get((relation, at), {_GAP}) if at else {_GAP}
    for value in sorted(values):
        if rest:
            yield from _followed(value, rest, facts)
        elif relations().by_name[relation].slots == "s":
            yield at, relation if (relation, at) in facts else None
        else:
            yield at, int(value) if value.isdigit() else value or None


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence as a pattern, and its longest fixed part: few texts contain that, which saves most searches."""

    fixed: str
    regex: re.Pattern[str]


def _read(lang: Language, ask: str) -> tuple[Form, dict[str, str]] | None:
    """Return the kind of a question and what is in its slots; a vague slot is `_GAP`. None if it is of no kind."""
    for form, sentence in _questions(lang):
        if sentence.fixed in ask and (match := sentence.regex.fullmatch(ask)):
            vague = _vague(lang)
            return form, {slot: _GAP if text.casefold() in vague else text for slot, text in match.groupdict().items()}
    return None


@cache
def _questions(lang: Language) -> tuple[tuple[Form, _Sentence], ...]:
    by_key = {**forms(), **{key: kind.form for key, kind in KINDS.items()}}
    worded = {**multihop_wordings(lang), **yesno_wordings(lang)}
    found = []
    for key, form in by_key.items():
        kinds = form.kinds()
        slots = {slot: _name(lang, kinds[slot]) if slot in kinds else r"\d+" for slot in form.slots}
        for letter, start in form.starts.items():
            vague = "|".join(map(re.escape, lexicon(lang).vague[start.kind]))
            slots[letter] = f"{slots[letter]}|(?i:{vague})"
        found += [(form, _filled(text, slots)) for text in worded[key]]
    return tuple(found)


@cache
def _vague(lang: Language) -> frozenset[str]:
    return frozenset(text.casefold() for kind in ENTITY_KINDS for text in lexicon(lang).vague[kind])


def _facts(lang: Language, text: str, form: Form, told: str | None) -> _Facts:
    """Read every fact in `text` that the form needs or describes by; what the user said fills an illegible one."""
    needed = {relation for leg in form.legs for relation in leg.path}
    stated = {relation for start in form.starts.values() for relation in start.stated}
    gaps, facts = lexicon(lang).vague["gap"], dict[tuple[str, str], set[str]]()
    for relation in sorted(needed | stated):
        number = bool(relations().by_name[relation].high)
        for sentence in _sentences(lang, relation):
            for match in sentence.regex.finditer(text) if sentence.fixed in text else ():
                found = match.groupdict()
                value = found.get("n" if number else "o") or relation
                if value in gaps:
                    value = told if told and relation in needed and told.isdigit() == number else _GAP
                facts.setdefault((relation, found["s"]), set()).add(value)
    for values in facts.values():
        if len(values) > 1:
            values.discard(_GAP)
    return facts


@cache
def _sentences(lang: Language, relation: str) -> tuple[_Sentence, ...]:
    spec, gap = relations().by_name[relation], "|".join(map(re.escape, lexicon(lang).vague["gap"]))
    # A quote may be cut in the middle of a number; a cut name is none.
    slots = {"s": _name(lang, spec.subject), "n": rf"\d+(?![\d…])|{gap}"}
    if spec.other:
        slots["o"] = f"{_name(lang, spec.other)}|{gap}" if spec.other in ENTITY_KINDS else f"[^,，。.]+?|{gap}"
    return tuple(_filled(text.rstrip(".。"), slots) for text in lexicon(lang).facts[relation])


def _filled(text: str, slots: Mapping[str, str]) -> _Sentence:
    """Return a sentence with patterns in its slots; after a clause its first letter is small."""
    parts = _SLOT.split(text)
    first = parts[0][:1]
    head = f"[{first.upper()}{first.lower()}]" if first.isalpha() and first.isascii() else re.escape(first)
    literal = [re.escape(part) for part in (parts[0][1:], *parts[2::2])]
    named = [f"(?P<{slot}>{slots[slot]})" for slot in parts[1::2]]
    pattern = head + literal[0] + "".join(slot + after for slot, after in zip(named, literal[1:], strict=True))
    return _Sentence(max((parts[0][1:], *parts[2::2]), key=len), re.compile(pattern))


@cache
def _name(lang: Language, kind: str) -> str:
    """Return the pattern of a name of this kind."""
    parts = open_words(f"{lang}/names").fields(ENTITY_KINDS)[kind].fields(("heads", "tails"))
    heads, tails = ("|".join(map(re.escape, parts[part].texts())) for part in ("heads", "tails"))
    return f"(?:{heads})(?:{tails})"
