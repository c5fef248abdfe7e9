"""GSM8K-style questions: a story on a page, and a question about it that needs one to six sums.

The number of sums is drawn first, then an opening that needs no more, then turns until the number is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rc1_lib.records import Decoy, Passage, Question, Slot, Step, Twin
from rc1_lib.sources.embedded.lookups import occurs_once
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_sums import Part, work_out
from rc1_lib.sources.embedded.story_turns import FOLLOWING, LAST, TURNS
from rc1_lib.sources.embedded.story_words import story_words

# Number of sums per story in per cent, distributed like the calculator annotations in GSM8K's solutions.
_SUMS: Final = (1,) * 8 + (2,) * 28 + (3,) * 28 + (4,) * 20 + (5,) * 10 + (6,) * 6
_TRIES = 12
_SUMS_OF_TWINS = 2
# The openings that a turn can continue.
_CONTINUABLE = tuple(key for key in OPENINGS if key not in ("shared", "ages", "average", "rivals"))
_EXACT: Mapping[int, tuple[str, ...]] = {
    count: tuple(key for key, opening in OPENINGS.items() if len(opening.formulas) == count) for count in (1, 2, 3)
}
_GROUPS: Mapping[str, str] = {"rows": "plants", "baked": "bakes"}


def story(scene: Scene) -> Question | None:
    """Return one arithmetic story, or None if no number can be withheld."""
    count = scene.pick(_SUMS)
    # Repeated until a plan fits, so that high counts are as frequent as in `_SUMS`.
    while (parts := _plan(scene, count)) is None:
        pass
    return StoryWriter(scene, parts[0].key).question(parts)


def _plan(scene: Scene, count: int) -> list[Part] | None:
    """Draw the parts of a story that needs `count` sums; None if the drawn numbers do not fit."""
    if count <= 3 and scene.chance(0.4):
        return [_opened(scene, scene.pick(_EXACT[count]))]
    part = _opened(scene, scene.pick(_CONTINUABLE))
    parts = [part]
    left = count - len(part.sums)
    for _ in range(_TRIES):
        if left <= 0:
            break
        following = FOLLOWING.get(part.unit, ())
        options = following + LAST.get(part.unit, ()) if left == 1 else following
        if not options:
            return None
        key = scene.pick(options)
        if len(TURNS[key].formulas) <= left and (grown := _continued(scene, key, part)):
            part = grown
            parts.append(part)
            left -= len(part.sums)
    return parts if left == 0 else None


def _opened(scene: Scene, key: str) -> Part:
    opening = OPENINGS[key]
    numbers = opening.draw(scene)
    return Part(key, numbers, work_out(opening.formulas, numbers), opening.unit)


def _continued(scene: Scene, key: str, part: Part) -> Part | None:
    turn = TURNS[key]
    numbers = turn.draw(scene, part.value)
    if numbers is None:
        return None
    return Part(key, numbers, work_out(turn.formulas, {"v": part.value, **numbers}), turn.unit or part.unit)


class StoryWriter:
    """Words the parts of one story."""

    __slots__ = ("blanks", "scene", "wanted", "words")

    def __init__(self, scene: Scene, opening: str) -> None:
        """Draw the people and things of a story that begins with `opening`."""
        self.scene, self.words = scene, story_words(scene.lexicon.lang)
        self.blanks: dict[str, str | int] = dict(zip("pqt", scene.cast("person", "person", "town"), strict=True))
        self.blanks |= {"w": scene.word("trades"), "mood": scene.pick(self.words.words["moods"])}
        self.wanted: list[tuple[str, str]] = []
        things = _GROUPS.get(opening, "goods")
        for measure, name, group in (("m", "g", things), ("mh", "h", "goods"), ("ma", "l", "animals")):
            self.blanks[measure], self.blanks[name] = scene.pick(self.words.counted[group])
        self.blanks["box"], self.blanks["boxes"] = scene.pick(self.words.boxes)

    def question(self, parts: list[Part]) -> Question | None:
        """Return the finished question; None if no number of the story can be withheld."""
        scene, words = self.scene, self.words
        if self.blanks["g"] == self.blanks["h"]:
            return None
        introduced = scene.chance(0.4)
        sentences = self._sentences(parts, introduced)
        wording = scene.pick(words.asks[parts[-1].unit])
        ask = wording.format_map(self.blanks)
        support = self._with_asides(sentences)
        slot = self._slot(scene.lexicon.joint.join(support), ask)
        if slot is None:
            return None
        page, steps = self._page(support, parts)
        return Question(
            id=scene.id,
            task="gsm8k",
            source="embedded",
            lang=scene.lexicon.lang,
            ask=ask,
            support=support,
            passages=(page,),
            steps=steps,
            answer=steps[-1].result,
            slot=slot,
            decoy=Decoy(page.title, self._decoy()),
            twin=self._twin(parts[0], ask, support, introduced) if _may_have_twin(parts, wording) else None,
        )

    def _sentences(self, parts: Sequence[Part], introduced: bool) -> list[str]:
        sentences = [self.scene.pick(self.words.introductions).format_map(self.blanks)] if introduced else []
        for part in parts:
            sentences += self._part(part)
        return sentences

    def _part(self, part: Part) -> list[str]:
        scene, words = self.scene, self.words
        self.blanks.update(part.numbers)
        self.blanks["r"] = scene.new("person")
        self.blanks |= {"cost": scene.pick(words.words["costs"]), "loss": scene.pick(words.words["losses"])}
        for number, wanted in words.parts[part.key].wanted:
            self.wanted.append((str(part.numbers[number]), wanted.format_map(self.blanks)))
        return [text.format_map(self.blanks) for text in scene.pick(words.parts[part.key].wordings)]

    def _with_asides(self, sentences: Iterable[str]) -> tuple[str, ...]:
        scene = self.scene
        return tuple(scene.aside(text) if scene.chance(0.7 * scene.density) else text for text in sentences)

    def _page(self, support: Iterable[str], parts: Sequence[Part]) -> tuple[Passage, tuple[Step, ...]]:
        """Write a page with these sentences, and return it with the worked solution."""
        page = Passage(self.scene.new("book"), self.scene.lexicon.joint.join(support))
        sums = [Step("calc", expression, result) for part in parts for expression, result in part.sums]
        return page, (Step("wiki", page.title, page.text), *sums)

    def _slot(self, text: str, ask: str) -> Slot | None:
        """Return a number that occurs once, and for which a vague word reads well; None if there is none."""
        fitting = [
            (value, vague, wanted)
            for value, wanted in self.wanted
            if value not in ask and occurs_once(value, text) and (vague := self._vague_words(value, text))
        ]
        if not fitting:
            return None
        value, vague, wanted = self.scene.pick(fitting)
        return Slot("story", value, self.scene.pick(vague), wanted)

    def _vague_words(self, value: str, text: str) -> tuple[str, ...]:
        """Return the vague words that form no awkward phrase in place of `value`."""
        return tuple(
            vague
            for vague in self.scene.lexicon.vague["number"]
            if not any(phrase in text.replace(value, vague) for phrase in self.words.awkward)
        )

    def _decoy(self) -> str:
        """Return a sentence with a vague number that does not matter to the story."""
        scene, words = self.scene, self.words
        blanks: dict[str, str | int] = {"v": scene.pick(scene.lexicon.vague["number"]), "r": scene.new("person")}
        for measure, name, group in (("mx", "x", "goods"), ("my", "y", "animals")):
            blanks[measure], blanks[name] = scene.pick(
                [thing for thing in words.counted[group] if thing[1] not in self.blanks.values()]
            )
        (sentence,) = self._with_asides([scene.pick(words.decoys).format_map(self.blanks | blanks)])
        return sentence

    def _twin(self, part: Part, ask: str, support: tuple[str, ...], introduced: bool) -> Twin | None:
        """Tell the same of somebody else with other numbers; None if the drawn numbers are too similar."""
        scene, person = self.scene, str(self.blanks["p"])
        other = self._other(part)
        if other is None:
            return None
        self.blanks |= zip("pq", scene.cast("person", "person"), strict=True)
        told = self._with_asides(self._sentences([other], introduced))
        page, steps = self._page(told, [other])
        vague, wanted = (scene.pick(texts["person"]) for texts in (scene.lexicon.vague, scene.lexicon.wanted))
        return Twin(
            slot=Slot("ask", person, vague, wanted, way="ambiguous"),
            described=support,
            support=told,
            passages=(page,),
            steps=steps,
            answer=other.sums[-1][1],
        )

    def _other(self, part: Part) -> Part | None:
        """Draw the same opening with another result and without a number of `part`."""
        for _ in range(_TRIES):
            other = _opened(self.scene, part.key)
            if other.value != part.value and not set(other.numbers.values()) & set(part.numbers.values()):
                return other
        return None


def _may_have_twin(parts: Sequence[Part], ask: str) -> bool:
    """Return whether the story is short, and its question names nobody but the person whose name can be withheld."""
    return len(parts) == 1 and len(parts[0].sums) <= _SUMS_OF_TWINS and "{q}" not in ask
