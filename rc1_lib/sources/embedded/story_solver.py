"""The solver of arithmetic stories: reads a question and texts, and works out every answer that they allow.

It knows how stories are worded (the word files) and which sums they need (the formulas), but nothing of how a question
was generated: text in, answers out.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from rc1_lib.numbers.calculator import CalculatorError
from rc1_lib.records import Language
from rc1_lib.sources.embedded.lexicon import lexicon
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_sums import Unit, work_out
from rc1_lib.sources.embedded.story_turns import FOLLOWING, LAST, TURNS
from rc1_lib.sources.embedded.story_words import story_words

Blanks = Mapping[str, str]

_CUT = "…"  # ends a quoted beginning of a sentence
_NUMBERS = frozenset("abcdkn")
# What a turn says for itself; all other blanks are the story's, with the same text in all its sentences.
_OWN = frozenset({"k", "n", "r", "cost", "loss"})
# The slot for {p} in a question, where a vague word may stand instead of a name.
_SOMEBODY = "somebody"


@dataclass(frozen=True, slots=True)
class _Pattern:
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
class _Said:
    """A sentence found in a text, with what its slots say."""

    pattern: _Pattern
    start: int
    end: int
    blanks: Blanks


@dataclass(frozen=True, slots=True)
class _Story:
    """A story found in a text.

    Attributes:
        unit: what it counts at the end.
        blanks: the names and things in it.
        parts: the opening or turn, and its sentences, in order.
    """

    unit: Unit
    blanks: Blanks
    parts: Sequence[tuple[str, Sequence[_Said]]]


def story_answers(lang: Language, ask: str, texts: Iterable[str], value: str | None = None) -> frozenset[str] | None:
    """Return every answer that the texts allow.

    Args:
        lang: the language.
        ask: the question, which names a person, or says "someone", and a town.
        texts: pages and quotes, each with whole stories; sentences may repeat, and cut ones are ignored.
        value: what the user says is missing: a number of the story, or the person's name.

    Returns:
        One answer if it is determined, several if the question fits several stories; None if there is no limit to
        them: no story fits, or a number that it needs is not told.
    """
    said = [(text, _said(lang, text)) for text in texts]
    told = [sentence for _, sentences in said for sentence in sentences]
    stories = [story for text, sentences in said if _CUT not in text for story in _stories(sentences)]
    answers = set()
    for unit, asked in _readings(lang, ask):
        named = "p" in asked
        wanted = asked if named or value is None else {**asked, "p": value}
        for story in stories:
            if story.unit == unit and _agree(story.blanks, wanted):
                answer = _worked_out(story, told, value if named else None)
                if answer is None:
                    return None
                answers.add(answer)
    return frozenset(answers) or None


def _readings(lang: Language, ask: str) -> list[tuple[str, Blanks]]:
    """Return what the question may ask for: a unit, and the names and things in it, without a vague person."""
    vague = _vague(lang, "person")
    return [
        (
            asked.pattern.of[0],
            {"p" if slot == _SOMEBODY else slot: text for slot, text in asked.blanks.items() if text not in vague},
        )
        for asked in _found(_ask_patterns(lang), ask, _options(lang))
    ]


def _said(lang: Language, text: str) -> list[_Said]:
    """Return the stories' sentences in `text`, in order, without those that are a part of another one."""
    found = _found(_patterns(lang), text, _options(lang))
    found.sort(key=lambda sentence: (sentence.start, -sentence.end))
    outermost: list[_Said] = []
    for sentence in found:
        if not outermost or sentence.end > outermost[-1].end or sentence.start == outermost[-1].start:
            outermost.append(sentence)
    return outermost


def _found(patterns: Iterable[_Pattern], text: str, options: Mapping[str, Collection[str]]) -> list[_Said]:
    return [
        _Said(pattern, match.start(), match.end(), blanks)
        for pattern in patterns
        if pattern.literal in text
        for match in pattern.regex.finditer(text)
        for blanks in (match.groupdict(),)
        if all(slot in _NUMBERS or said in options[slot] for slot, said in blanks.items())
    ]


def _stories(said: Sequence[_Said]) -> list[_Story]:
    """Return the stories that these sentences of one text tell: every whole opening, with the turns after it."""
    return [
        story
        for number, sentence in enumerate(said)
        if sentence.pattern.place == 0 and sentence.pattern.of[0] in OPENINGS and (story := _story(said[number:]))
    ]


def _story(said: Sequence[_Said]) -> _Story | None:
    """Return the story that begins with the first of these sentences; None if its opening is not whole."""
    first = said[0]
    opening, blanks, place = [first], dict(first.blanks), 0
    for _ in range(1, first.pattern.sentences):
        place = next((number for number in range(place + 1, len(said)) if _goes_on(opening, blanks, said[number])), 0)
        if not place:
            return None
        opening.append(said[place])
        blanks |= said[place].blanks
    key = first.pattern.of[0]
    unit, parts, end = OPENINGS[key].unit, [(key, opening)], opening[-1].end
    for sentence in said[place + 1 :]:
        key = sentence.pattern.of[0]
        if sentence.start >= end and key in (*FOLLOWING.get(unit, ()), *LAST.get(unit, ())):
            theirs = {slot: text for slot, text in sentence.blanks.items() if slot not in _OWN}
            if _agree(blanks, theirs):
                blanks |= theirs
                unit, end = TURNS[key].unit or unit, sentence.end
                parts.append((key, [sentence]))
    return _Story(unit, blanks, parts)


def _goes_on(opening: Sequence[_Said], blanks: Blanks, sentence: _Said) -> bool:
    pattern = sentence.pattern
    return pattern.of == opening[0].pattern.of and pattern.place == len(opening) and _agree(blanks, sentence.blanks)


def _agree(blanks: Blanks, others: Blanks) -> bool:
    return all(blanks.get(slot, text) == text for slot, text in others.items())


def _worked_out(story: _Story, told: Sequence[_Said], value: str | None) -> str | None:
    """Return the result of the story's sums; `value` fills the gap if there is one gap."""
    own = [(sentence.pattern, sentence.blanks) for _, sentences in story.parts for sentence in sentences]
    # A story may have the same sentence twice, with different numbers.
    elsewhere = [sentence for sentence in told if (sentence.pattern, sentence.blanks) not in own]
    numbers = [
        {slot: text for sentence in sentences for slot, text in _numbers(sentence, elsewhere).items()}
        for _, sentences in story.parts
    ]
    gaps = [(part, slot) for part in numbers for slot, text in part.items() if not text.isdigit()]
    if len(gaps) == 1 and value and value.isdigit():
        part, slot = gaps.pop()
        part[slot] = value
    if gaps:
        return None
    reached = ""
    try:
        for (key, _), part in zip(story.parts, numbers, strict=True):
            formulas = OPENINGS[key].formulas if key in OPENINGS else TURNS[key].formulas
            reached = work_out(formulas, {"v": reached, **part})[-1][1]
    except CalculatorError:
        return None
    return reached


def _numbers(sentence: _Said, told: Sequence[_Said]) -> Blanks:
    """Return a sentence's numbers; a vague one is taken from the same sentence if that is told with the number."""
    numbers = {slot: text for slot, text in sentence.blanks.items() if slot in _NUMBERS}
    gaps = [slot for slot, text in numbers.items() if not text.isdigit()]
    if gaps:
        known = {slot: text for slot, text in sentence.blanks.items() if slot not in gaps}
        for other in told:
            if other.pattern is sentence.pattern and _agree(other.blanks, known):
                numbers |= {slot: other.blanks[slot] for slot in gaps if other.blanks[slot].isdigit()}
    return numbers


@cache
def _patterns(lang: Language) -> tuple[_Pattern, ...]:
    return tuple(
        _pattern(lang, (key, number), place, len(sentences), text)
        for key, part in story_words(lang).parts.items()
        for number, sentences in enumerate(part.wordings)
        for place, text in enumerate(sentences)
    )


@cache
def _ask_patterns(lang: Language) -> tuple[_Pattern, ...]:
    asks = story_words(lang).asks
    return tuple(
        _pattern(lang, (unit, number), 0, 1, text.replace("{p}", f"{{{_SOMEBODY}}}"))
        for unit, texts in asks.items()
        for number, text in enumerate(texts)
    )


def _pattern(lang: Language, of: tuple[str, int], place: int, sentences: int, text: str) -> _Pattern:
    """Compile the pattern of a sentence, which may have a clause before and after it."""
    # The last mark is a comma if a clause follows; after one before it, the first letter is a small one.
    pieces = [(literal, slot) for literal, slot, _, _ in string.Formatter().parse(text[:-1])]
    regex = "" if lexicon(lang).joint == "" else r"(?<!\w)"
    seen = set()
    for number, (literal, slot) in enumerate(pieces):
        if literal and not number:
            regex += f"[{literal[0]}{literal[0].lower()}]"
        regex += re.escape(literal[not number :])
        if slot in seen:
            regex += f"(?P={slot})"
        elif slot:
            adjacent = pieces[number + 1 : number + 2] and not pieces[number + 1][0]
            regex += f"(?P<{slot}>{_slot_regex(lang, slot, bool(adjacent))})"
            seen.add(slot)
    literals = (literal[not number :] for number, (literal, _) in enumerate(pieces))
    return _Pattern(of, place, sentences, max(literals, key=len), re.compile(f"{regex}(?=[.,?。，？])"))


def _slot_regex(lang: Language, slot: str, adjacent: bool) -> str:
    """Return what a slot may hold: any text of the right length, which is faster, unless another slot is `adjacent`."""
    if slot in _NUMBERS:
        return "|".join(["[0-9]+", *map(re.escape, _vague(lang, "number"))])
    options = sorted(_options(lang)[slot], key=len, reverse=True)
    if adjacent:
        return "|".join(map(re.escape, options))
    mark = r"\w" if all(option.isalnum() for option in options) else "[^.,。，]"
    return f"{mark}{{{len(options[-1])},{len(options[0])}}}?"


@cache
def _vague(lang: Language, kind: str) -> frozenset[str]:
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
        _SOMEBODY: persons | _vague(lang, "person"),
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
