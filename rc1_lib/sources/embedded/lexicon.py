"""The words of one language that all kinds of questions share: names, words, sentences for facts, and asides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rc1_lib.records import Language
from rc1_lib.sources.embedded.relations import KINDS, WORD_LISTS, relations
from rc1_lib.sources.embedded.word_files import Entry, open_words

Wordings = Mapping[str, tuple[str, ...]]
_ASIDE = ("quality", "writings", "people")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One language's names, words and sentence patterns.

    Attributes:
        joint: the text between two sentences.
        measures: whether a counted thing needs a measure word.
        also: kind of entity -> other forms of its names, as templates.
        names: kind of entity -> its names; each is one word made from syllables.
        words: word lists that facts lead to.
        facts: relation -> its sentences.
        prefixes: asides before a sentence, each in all its wordings.
        suffixes: asides after a sentence, each in all its wordings.
        joiners: openings of sentences that take no aside before them.
        vague: kind -> texts that replace something withheld; `gap` stands for an illegible part of a page.
        wanted: kind -> what the assistant then asks for.
        wanted_facts: relation that may be illegible -> what the assistant then asks for, with the slot `s`.
    """

    lang: Language
    joint: str
    measures: bool
    also: Wordings
    names: Wordings
    words: Wordings
    facts: Wordings
    prefixes: tuple[tuple[str, ...], ...]
    suffixes: tuple[tuple[str, ...], ...]
    joiners: tuple[str, ...]
    vague: Wordings
    wanted: Wordings
    wanted_facts: Mapping[str, str]


@cache
def lexicon(lang: Language) -> Lexicon:
    """Read the files of `lang`.

    Raises:
        SourceError: when a file does not fit the schema.
    """
    grammar = open_words(f"{lang}/grammar").fields(("between_sentences", "measure_words", "also"))
    asides = open_words(f"{lang}/asides").fields(("before", "after", "openers", *_ASIDE))
    withheld = open_words(f"{lang}/withheld").fields(("vague", "wanted", "wanted_facts"))
    facts = open_words(f"{lang}/facts").fields(KINDS)
    return Lexicon(
        lang=lang,
        joint=grammar["between_sentences"].text(),
        measures=grammar["measure_words"].flag(),
        also={kind: entry.texts(("name",)) for kind, entry in grammar["also"].fields((), KINDS).items()},
        names={kind: _names(entry) for kind, entry in open_words(f"{lang}/names").fields(KINDS).items()},
        words=word_lists(open_words(f"{lang}/things"), WORD_LISTS),
        facts={name: lines for kind in KINDS for name, lines in _facts(kind, facts[kind]).items()},
        prefixes=_filled(asides["before"], asides),
        suffixes=_filled(asides["after"], asides),
        joiners=asides["openers"].texts(),
        vague=word_lists(withheld["vague"], (*KINDS, "number", "gap")),
        wanted=word_lists(withheld["wanted"], KINDS),
        wanted_facts={
            name: entry.text("s") for name, entry in withheld["wanted_facts"].fields((), relations().by_name).items()
        },
    )


def word_lists(entry: Entry, keys: tuple[str, ...]) -> Wordings:
    """Return lists of plain texts by key."""
    return {key: words.texts() for key, words in entry.fields(keys).items()}


def _names(entry: Entry) -> tuple[str, ...]:
    """Combine every head with every tail."""
    parts = entry.fields(("heads", "tails"))
    return tuple(head + tail for head in parts["heads"].texts() for tail in parts["tails"].texts())


def _facts(kind: str, entry: Entry) -> Wordings:
    """Return the sentences of each relation about `kind`."""
    wanted = {name: relation for name, relation in relations().by_name.items() if relation.subject == kind}
    return {name: lines.texts(wanted[name].slots) for name, lines in entry.fields(wanted).items()}


def _filled(asides: Entry, parts: Mapping[str, Entry]) -> tuple[tuple[str, ...], ...]:
    """Fill each aside's slots in every way, computed once, since most sentences of a large pool may have an aside."""
    qualities, writings, people = (parts[name].texts() for name in _ASIDE)
    if len(writings) != len(people):
        raise parts["people"].fault(f"as many entries as there are writings ({len(writings)})")
    return tuple(
        tuple(
            dict.fromkeys(
                aside.format(quality=quality, writings=written, people=who)
                for quality in qualities
                for written, who in zip(writings, people, strict=True)
            )
        )
        for aside in asides.texts(may=_ASIDE)
    )
