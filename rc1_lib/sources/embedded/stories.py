"""GSM8K-style questions: a story on a page, and a question about it that needs one to six sums.

The number of sums is drawn first, then an opening that needs no more, then turns until the number is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rc1_lib.records import Passage, Question, Slot, Step
from rc1_lib.sources.embedded.draft import occurs_once
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_sums import Part, work_out
from rc1_lib.sources.embedded.story_turns import FOLLOWING, LAST, TURNS
from rc1_lib.sources.embedded.story_words import story_words

# Number of sums per story in per cent, distributed like the calculator annotations in GSM8K's solutions.
_SUMS: Final = (1,) * 8 + (2,) * 28 + (3,) * 28 + (4,) * 20 + (5,) * 10 + (6,) * 6
_TRIES = 12
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
        sentences = [scene.pick(words.introductions).format_map(self.blanks)] if scene.chance(0.4) else []
        for part in parts:
            sentences += self._sentences(part)
        ask = scene.pick(words.asks[parts[-1].unit]).format_map(self.blanks)
        support = tuple(scene.aside(text) if scene.chance(0.7 * scene.density) else text for text in sentences)
        text = scene.lexicon.joint.join(support)
        slot = self._slot(text, ask)
        if slot is None or str(self.blanks["p"]) not in text:
            return None
        title = scene.new("book")
        sums = [Step("calc", expression, result) for part in parts for expression, result in part.sums]
        return Question(
            id=scene.id,
            task="gsm8k",
            source="embedded",
            lang=scene.lexicon.lang,
            ask=ask,
            support=support,
            passages=(Passage(title, text),),
            steps=(Step("wiki", title, text), *sums),
            answer=sums[-1].result,
            slot=slot,
            lookups=(title,),
        )

    def _sentences(self, part: Part) -> list[str]:
        scene, words = self.scene, self.words
        self.blanks.update(part.numbers)
        self.blanks["r"] = scene.new("person")
        self.blanks |= {"cost": scene.pick(words.words["costs"]), "loss": scene.pick(words.words["losses"])}
        for blank, wanted in words.parts[part.key].wanted:
            self.wanted.append((str(part.numbers[blank]), wanted.format_map(self.blanks)))
        return [text.format_map(self.blanks) for text in scene.pick(words.parts[part.key].wordings)]

    def _slot(self, text: str, ask: str) -> Slot | None:
        fitting = [(value, wanted) for value, wanted in self.wanted if value not in ask and occurs_once(value, text)]
        if not fitting:
            return None
        value, wanted = self.scene.pick(fitting)
        return Slot("story", value, self.scene.pick(self.scene.lexicon.vague["number"]), wanted)
