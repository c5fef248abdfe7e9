"""The solver of arithmetic stories: reads a question and texts, and works out every answer that they allow.

It knows how stories are worded (the word files) and which sums they need (the formulas), but nothing of how a question
was generated: text in, answers out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rc1_lib.numbers.calculator import CalculatorError
from rc1_lib.records import Language
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_patterns import (
    NUMBERS,
    SOMEBODY,
    Blanks,
    Said,
    find,
    question_patterns,
    sentence_patterns,
    vague_words,
)
from rc1_lib.sources.embedded.story_sums import Unit, work_out
from rc1_lib.sources.embedded.story_turns import FOLLOWING, LAST, TURNS

_CUT = "…"  # ends a quoted beginning of a sentence
# What a turn says for itself; all other blanks are the story's, with the same text in all its sentences.
_OWN = frozenset({"k", "n", "r", "cost", "loss"})


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
    parts: Sequence[tuple[str, Sequence[Said]]]


def story_answers(lang: Language, ask: str, texts: Iterable[str], value: str | None = None) -> frozenset[str] | None:
    """Return every answer that the texts allow.

    Args:
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
    vague = vague_words(lang, "person")
    return [
        (
            asked.pattern.of[0],
            {"p" if slot == SOMEBODY else slot: text for slot, text in asked.blanks.items() if text not in vague},
        )
        for asked in find(question_patterns(lang), ask, lang)
    ]


def _said(lang: Language, text: str) -> list[Said]:
    """Return the stories' sentences in `text`, in order, without those that are a part of another one."""
    found = find(sentence_patterns(lang), text, lang)
    found.sort(key=lambda sentence: (sentence.start, -sentence.end))
    outermost: list[Said] = []
    for sentence in found:
        if not outermost or sentence.end > outermost[-1].end or sentence.start == outermost[-1].start:
            outermost.append(sentence)
    return outermost


def _stories(said: Sequence[Said]) -> list[_Story]:
    """Return the stories that these sentences of one text tell: every whole opening, with the turns after it."""
    return [
        story
        for number, sentence in enumerate(said)
        if sentence.pattern.place == 0 and sentence.pattern.of[0] in OPENINGS and (story := _story(said[number:]))
    ]


def _story(said: Sequence[Said]) -> _Story | None:
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


def _goes_on(opening: Sequence[Said], blanks: Blanks, sentence: Said) -> bool:
    pattern = sentence.pattern
    return pattern.of == opening[0].pattern.of and pattern.place == len(opening) and _agree(blanks, sentence.blanks)


def _agree(blanks: Blanks, others: Blanks) -> bool:
    return all(blanks.get(slot, text) == text for slot, text in others.items())


def _worked_out(story: _Story, told: Sequence[Said], value: str | None) -> str | None:
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


def _numbers(sentence: Said, told: Sequence[Said]) -> Blanks:
    """Return a sentence's numbers; a vague one is taken from the same sentence if that is told with the number."""
    numbers = {slot: text for slot, text in sentence.blanks.items() if slot in NUMBERS}
    gaps = [slot for slot, text in numbers.items() if not text.isdigit()]
    if gaps:
        known = {slot: text for slot, text in sentence.blanks.items() if slot not in gaps}
        for other in told:
            if other.pattern is sentence.pattern and _agree(other.blanks, known):
                numbers |= {slot: other.blanks[slot] for slot in gaps if other.blanks[slot].isdigit()}
    return numbers
