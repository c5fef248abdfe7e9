"""The words of the arithmetic stories: what they are about, how they begin, go on, and end in a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

from rc1_lib.records import Language
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_sums import Unit
from rc1_lib.sources.embedded.story_turns import TURNS, numbers_told
from rc1_lib.sources.embedded.tongues import Wordings, tongue
from rc1_lib.sources.embedded.word_files import Entry, braced, open_words, slots_of

Pairs = tuple[tuple[str, str], ...]
Sentences = tuple[str, ...]

_COUNTED = ("goods", "plants", "bakes", "animals")
_LISTS = ("moods", "costs", "losses")
_ALWAYS = ("p", "t")
_CAST = (*_ALWAYS, "q", "w", "g", "h", "l", "box", "boxes")
_MEASURES = ("m", "mh", "ma")
_NEW = ("r", "cost", "loss")


@dataclass(frozen=True, slots=True)
class PartWords:
    """The wording of an opening or turn, which of its numbers can be withheld, and what to ask for then."""

    told: tuple[Sentences, ...]
    wanted: Pairs


@dataclass(frozen=True, slots=True)
class StoryWords:
    """One language's words for arithmetic stories.

    Attributes:
        words: word lists.
        counted: pairs of a measure word, empty in a language that needs none, and the thing.
        boxes: one container, and several of them.
        introductions: sentences that may precede a story.
        parts: the openings and turns by key.
        asks: the questions, by what is counted.
    """

    words: Wordings
    counted: Mapping[str, Pairs]
    boxes: Pairs
    introductions: tuple[str, ...]
    parts: Mapping[str, PartWords]
    asks: Wordings


@cache
def story_words(lang: Language) -> StoryWords:
    """The content of the story files of `lang`.

    Raises:
        SourceError: when a file does not fit.
    """
    measures = tongue(lang).measures
    cast = (*_CAST, *_MEASURES) if measures else _CAST
    things = open_words(f"{lang}/story_things").fields((*_COUNTED, *_LISTS, "boxes"))
    start = open_words(f"{lang}/story_openings").fields(("introductions", "openings"))
    openings, turns = start["openings"].fields(OPENINGS), open_words(f"{lang}/story_turns").fields(TURNS)
    asks = open_words(f"{lang}/story_asks").fields(get_args(Unit))
    return StoryWords(
        words={key: things[key].texts() for key in _LISTS},
        counted={key: tuple(_counted(entry, measures) for entry in things[key].items()) for key in _COUNTED},
        boxes=tuple(_box(entry) for entry in things["boxes"].items()),
        introductions=start["introductions"].texts((*_ALWAYS, "w"), ("mood",)),
        parts={
            **{key: _opening(entry, OPENINGS[key].numbers, cast) for key, entry in openings.items()},
            **{key: _turn(entry, numbers_told(key), (*cast, *_NEW)) for key, entry in turns.items()},
        },
        asks={unit: entry.texts(_ALWAYS, cast) for unit, entry in asks.items()},
    )


def _opening(entry: Entry, numbers: str, cast: Sequence[str]) -> PartWords:
    parts = entry.fields(("told", "wanted"))
    told = tuple(_naming_all(item, (*numbers, *_ALWAYS), (*cast, *numbers)) for item in parts["told"].items())
    return PartWords(told, _wanted(parts["wanted"], numbers, cast))


def _turn(entry: Entry, numbers: str, cast: Sequence[str]) -> PartWords:
    parts = entry.fields(("told", "wanted"))
    told = tuple((sentence,) for sentence in parts["told"].texts(numbers, cast))
    return PartWords(told, _wanted(parts["wanted"], numbers, cast))


def _naming_all(entry: Entry, needed: Sequence[str], may: Sequence[str]) -> Sentences:
    """Sentences that name each of the slots `needed` somewhere."""
    sentences = entry.texts(may=may)
    named = {slot for item in entry.items() for slot in slots_of(item)}
    if missing := [slot for slot in needed if slot not in named]:
        raise entry.fault(f"sentences that name {braced(missing)}, too")
    return sentences


def _wanted(entry: Entry, numbers: str, cast: Sequence[str]) -> Pairs:
    """What can be withheld from a part: at least one number."""
    if not entry.keys():
        raise entry.fault(f"at least one of the numbers {', '.join(numbers)}")
    return tuple((number, phrase.text(may=cast)) for number, phrase in entry.fields((), numbers).items())


def _counted(entry: Entry, measures: bool) -> tuple[str, str]:
    """A thing with its measure word, which is empty in a language that needs none."""
    measure, bar, name = entry.text().rpartition("|")
    if not name or bool(bar) != measures or bool(measure) != measures:
        raise entry.fault("a measure word, a bar and a thing" if measures else "a thing without a bar")
    return measure, name


def _box(entry: Entry) -> tuple[str, str]:
    """One container and several of them, which may be the same word."""
    one, bar, several = entry.text().partition("|")
    if not one or "|" in several or bool(bar) != bool(several):
        raise entry.fault("one word, or two words separated by a bar")
    return one, several or one
