"""The words of the arithmetic stories: what they are about, how they begin, go on, and end in a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

from rc1_lib.records import Language
from rc1_lib.sources.embedded.lexicon import Wordings, lexicon
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_sums import Unit, numbers_stated
from rc1_lib.sources.embedded.story_turns import TURNS
from rc1_lib.sources.embedded.word_files import Entry, braced, open_words, slots_of

Pairs = tuple[tuple[str, str], ...]
Sentences = tuple[str, ...]

_COUNTED = ("goods", "plants", "bakes", "animals")
_LISTS = ("moods", "costs", "losses")
_ALWAYS = ("p", "t")
_CAST = (*_ALWAYS, "q", "w", "g", "h", "l", "box", "boxes")
_MEASURES = ("m", "mh", "ma")
_NEW = ("r", "cost", "loss")
_BESIDE = (*_ALWAYS, "r", "x", "y", "box", "boxes")
_BESIDE_MEASURES = ("mx", "my")


@dataclass(frozen=True, slots=True)
class PartWords:
    """The wordings of an opening or turn; `wanted` are its numbers that can be withheld, and what to ask for then."""

    wordings: tuple[Sentences, ...]
    wanted: Pairs


@dataclass(frozen=True, slots=True)
class StoryWords:
    """One language's words for arithmetic stories.

    Attributes:
        counted: pairs of a measure word, empty in a language without these, and a thing.
        boxes: containers, in singular and plural.
        introductions: sentences that may precede a story.
        parts: openings and turns by key.
        asks: unit -> questions about it.
        awkward: phrases that a word for a number that is not told must not form.
        decoys: sentences with such a word that do not matter to the sum.
    """

    words: Wordings
    counted: Mapping[str, Pairs]
    boxes: Pairs
    introductions: tuple[str, ...]
    parts: Mapping[str, PartWords]
    asks: Wordings
    awkward: tuple[str, ...]
    decoys: tuple[str, ...]


@cache
def story_words(lang: Language) -> StoryWords:
    """Read the story files of `lang`.

    Raises:
        SourceError: when a file does not fit the schema.
    """
    measures = lexicon(lang).measures
    cast = (*_CAST, *_MEASURES) if measures else _CAST
    things = open_words(f"{lang}/story_things").fields((*_COUNTED, *_LISTS, "boxes"))
    start = open_words(f"{lang}/story_openings").fields(("introductions", "openings"))
    openings, turns = start["openings"].fields(OPENINGS), open_words(f"{lang}/story_turns").fields(TURNS)
    asks = open_words(f"{lang}/story_asks").fields(get_args(Unit))
    vague = open_words(f"{lang}/story_vague").fields(("awkward", "decoys"))
    return StoryWords(
        words={key: things[key].texts() for key in _LISTS},
        counted={key: tuple(_counted(entry, measures) for entry in things[key].items()) for key in _COUNTED},
        boxes=tuple(_box(entry) for entry in things["boxes"].items()),
        introductions=start["introductions"].texts((*_ALWAYS, "w"), ("mood",)),
        parts={
            **{key: _opening(entry, numbers_stated(OPENINGS[key].formulas), cast) for key, entry in openings.items()},
            **{key: _turn(entry, numbers_stated(TURNS[key].formulas), (*cast, *_NEW)) for key, entry in turns.items()},
        },
        asks={unit: entry.texts(_ALWAYS, cast) for unit, entry in asks.items()},
        awkward=vague["awkward"].texts(),
        decoys=vague["decoys"].texts(("v",), (*_BESIDE, *_BESIDE_MEASURES) if measures else _BESIDE),
    )


def _opening(entry: Entry, numbers: str, cast: Sequence[str]) -> PartWords:
    parts = entry.fields(("told", "wanted"))
    wordings = tuple(_naming_all(item, (*numbers, *_ALWAYS), (*cast, *numbers)) for item in parts["told"].items())
    return PartWords(wordings, _wanted(parts["wanted"], numbers, cast))


def _turn(entry: Entry, numbers: str, cast: Sequence[str]) -> PartWords:
    parts = entry.fields(("told", "wanted"))
    wordings = tuple((sentence,) for sentence in parts["told"].texts(numbers, cast))
    return PartWords(wordings, _wanted(parts["wanted"], numbers, cast))


def _naming_all(entry: Entry, needed: Sequence[str], may: Sequence[str]) -> Sentences:
    """Read sentences that together name each of the slots `needed`."""
    sentences = entry.texts(may=may)
    named = {slot for item in entry.items() for slot in slots_of(item)}
    if missing := [slot for slot in needed if slot not in named]:
        raise entry.fault(f"sentences that also name {braced(missing)}")
    return sentences


def _wanted(entry: Entry, numbers: str, cast: Sequence[str]) -> Pairs:
    """Read the numbers that can be withheld from a part, at least one, each with what to ask for."""
    if not entry.keys():
        raise entry.fault(f"at least one of the numbers {', '.join(numbers)}")
    return tuple((number, phrase.text(may=cast)) for number, phrase in entry.fields((), numbers).items())


def _counted(entry: Entry, measures: bool) -> tuple[str, str]:
    """Read a thing and its measure word, which is empty in a language without these."""
    measure, bar, name = entry.text().rpartition("|")
    if not name or bool(bar) != measures or bool(measure) != measures:
        raise entry.fault("a measure word, a bar and a thing" if measures else "a thing without a bar")
    return measure, name


def _box(entry: Entry) -> tuple[str, str]:
    """Read a container in singular and plural, which may be the same word."""
    one, bar, several = entry.text().partition("|")
    if not one or "|" in several or bool(bar) != bool(several):
        raise entry.fault("one word, or two words separated by a bar")
    return one, several or one
