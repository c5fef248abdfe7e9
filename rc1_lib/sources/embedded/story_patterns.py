"""Patterns that find the sentences of arithmetic stories, and the questions about them, in a text.

They are made from the word files, once, and so know every wording that a story can have.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain

from rc1_lib.records import Language
from rc1_lib.sources.embedded.lexicon import lexicon
from rc1_lib.sources.embedded.story_words import story_words

Blanks = Mapping[str, str]

NUMBERS = frozenset("abcdkn")
"""The slots that hold a number, or a vague word in place of it."""
SOMEBODY = "somebody"
"""The slot of a question's person, which holds a name, or a vague word in place of it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One sentence of a wording, or one question.

    Attributes:
        of: the opening or turn and the number of its wording; or the unit that a question asks for.
        place: which sentence of the wording it is, from 0.
        sentences: how many the wording has.
        literal: its longest text between two slots, which is looked for first, since that is fast.
        regex: finds it, with one group for each slot.
    """

    of: tuple[str, int]
    place: int
    sentences: int
    literal: str
    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence found in a text, with what its slots say."""

    pattern: Pattern
    start: int
    end: int
    blanks: Blanks


@cache
def sentence_patterns(lang: Language) -> tuple[Pattern, ...]:
    """Return a pattern for each sentence of each wording of an opening or turn."""
    return tuple(
        _compiled(lang, (key, number), place, len(sentences), text)
        for key, part in story_words(lang).parts.items()
        for number, sentences in enumerate(part.wordings)
        for place, text in enumerate(sentences)
    )


@cache
def question_patterns(lang: Language) -> tuple[Pattern, ...]:
    """Return a pattern for each question; its person is in the slot `SOMEBODY`."""
    asks = story_words(lang).asks
    return tuple(
        _compiled(lang, (unit, number), 0, 1, text.replace("{p}", f"{{{SOMEBODY}}}"))
        for unit, texts in asks.items()
        for number, text in enumerate(texts)
    )


def find(patterns: Iterable[Pattern], text: str, lang: Language) -> list[Said]:
    """Return every place in `text` that fits one of the patterns, with names and words of `lang` in its slots."""
    options = _options(lang)
    return [
        Said(pattern, match.start(), match.end(), blanks)
        for pattern in patterns
        if pattern.literal in text
        for match in pattern.regex.finditer(text)
        for blanks in (match.groupdict(),)
        if all(slot in NUMBERS or said in options[slot] for slot, said in blanks.items())
    ]


def _compiled(lang: Language, of: tuple[str, int], place: int, sentences: int, text: str) -> Pattern:
    """Compile the pattern of a sentence, which may have a clause before and after it."""
    # The last mark is a comma if a clause follows; after one before it, the first letter is a small one.
    pieces = [(literal, slot) for literal, slot, _, _ in string.Formatter().parse(text[:-1])]
    regex = "" if lexicon(lang).joint == "" else r"(?<!\w)"
    seen = set()
    for number, (literal, slot) in enumerate(pieces):
        if literal and not number:
            regex += f"[{re.escape(literal[0] + literal[0].lower())}]"
        regex += re.escape(literal[not number :])
        if slot in seen:
            regex += f"(?P={slot})"
        elif slot:
            adjacent = pieces[number + 1 : number + 2] and not pieces[number + 1][0]
            regex += f"(?P<{slot}>{_slot_regex(lang, slot, bool(adjacent))})"
            seen.add(slot)
    literals = (literal[not number :] for number, (literal, _) in enumerate(pieces))
    return Pattern(of, place, sentences, max(literals, key=len), re.compile(f"{regex}(?=[.,?。，？])"))


def _slot_regex(lang: Language, slot: str, adjacent: bool) -> str:
    """Return what a slot may hold: any text of the right length, which is faster, unless another slot is `adjacent`."""
    if slot in NUMBERS:
        return "|".join(["[0-9]+", *map(re.escape, vague_words(lang, "number"))])
    options = sorted(_options(lang)[slot], key=len, reverse=True)
    if adjacent:
        return "|".join(map(re.escape, options))
    mark = r"\w" if all(option.isalnum() for option in options) else "[^.,。，]"
    return f"{mark}{{{len(options[-1])},{len(options[0])}}}?"


@cache
def vague_words(lang: Language, kind: str) -> frozenset[str]:
    """Return the words in place of something withheld, as they begin a sentence and as they stand within one."""
    words = lexicon(lang).vague[kind]
    return frozenset(chain(words, (word[0].upper() + word[1:] for word in words)))


@cache
def _options(lang: Language) -> Mapping[str, frozenset[str]]:
    """Return what each slot may hold, except those for numbers."""
    words, names = story_words(lang), lexicon(lang).names
    counted = {group: frozenset(thing for _, thing in pairs) for group, pairs in words.counted.items()}
    things = frozenset(chain(*(counted[group] for group in counted if group != "animals")))
    measures = frozenset(measure for pairs in words.counted.values() for measure, _ in pairs)
    persons = frozenset(names["person"])
    return {
        **dict.fromkeys("pqr", persons),
        SOMEBODY: persons | vague_words(lang, "person"),
        "t": frozenset(names["town"]),
        "w": frozenset(lexicon(lang).words["trades"]),
        **dict.fromkeys("gh", things),
        "l": counted["animals"],
        **dict.fromkeys(("m", "mh", "ma"), measures),
        "box": frozenset(one for one, _ in words.boxes),
        "boxes": frozenset(several for _, several in words.boxes),
        "cost": frozenset(words.words["costs"]),
        "loss": frozenset(words.words["losses"]),
    }
