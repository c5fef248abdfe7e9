"""A question under construction: pages to look up, sums to calculate, and finally the `Question`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rc1_lib.records import Passage, Question, Slot, Step, Task
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.scene import Fact, Scene

# Numbers of distractor pages, mostly small, since pages cost time and a small model's context.
_DISTRACTORS = (3, 3, 4, 4, 5, 6)


class Draft:
    """Collects the look-ups and calculations of the worked solution, in order.

    Distractor pages state the same relations of other entities, so that a careless reader picks the wrong one.
    """

    __slots__ = ("_relations", "passages", "scene", "steps", "support")

    def __init__(self, scene: Scene) -> None:
        """Start with an empty solution."""
        self.scene = scene
        self.passages: list[Passage] = []
        self.steps: list[Step] = []
        self.support: list[str] = []
        self._relations: list[str] = []

    def look(self, title: str, needed: Sequence[Fact], extra: Sequence[Fact] = ()) -> None:
        """Write the page of `title` with all facts, and add a step that looks up the `needed` ones."""
        scene = self.scene
        sentences = [scene.sentence(fact, title) for fact in needed]
        self.support += sentences
        self._relations += [fact[0] for fact in needed]
        taken = {fact[0] for fact in (*needed, *extra)}
        others = [scene.sentence(fact, title) for fact in extra]
        room = scene.number(0, 1) if others else scene.number(1, 2)
        others += self._fillers(title, relations().by_name[needed[0][0]].subject, taken, room)
        cut = scene.number(0, len(others))
        text = scene.lexicon.joint.join((*others[:cut], *sentences, *others[cut:]))
        self.passages.append(Passage(title, text))
        self.steps.append(Step("wiki", title, text))

    def compute(self, expression: str, result: int | bool) -> None:
        """Add a step that calculates a sum, or a comparison, whose result is yes or no."""
        said = ("yes" if result else "no") if isinstance(result, bool) else str(result)
        self.steps.append(Step("calc", expression, said))

    def add_distractors(self) -> None:
        """Add three to six pages about other entities of this world."""
        scene = self.scene
        for _ in range(scene.pick(_DISTRACTORS)):
            relation = scene.pick(self._relations)
            kind = relations().by_name[relation].subject
            title = scene.new(kind)
            needed = scene.sentence(scene.fact(relation), title)
            extra = scene.sentence(scene.filler(kind, {relation}), title)
            self.passages.append(Passage(title, needed + scene.lexicon.joint + extra))

    def question(
        self, task: Task, ask: str, answer: str, slots: Mapping[str, str], aliases: tuple[str, ...] = ()
    ) -> Question | None:
        """Return the finished question; None if the text of the drawn slot does not occur exactly once.

        `slots` maps the entities in `ask` that can be withheld to their kinds.
        """
        value = self.scene.pick(tuple(slots))
        if not occurs_once(value, ask):
            return None
        return Question(
            id=self.scene.id,
            task=task,
            source="embedded",
            lang=self.scene.lexicon.lang,
            ask=ask,
            support=tuple(self.support),
            passages=tuple(self.passages),
            steps=tuple(self.steps),
            answer=answer,
            aliases=aliases,
            slot=self._slot(value, slots[value], ask),
        )

    def _slot(self, value: str, kind: str, ask: str) -> Slot:
        vague = self.scene.pick(self.scene.lexicon.vague[kind])
        if ask.startswith(value):
            vague = vague[0].upper() + vague[1:]
        return Slot("ask", value, vague, self.scene.pick(self.scene.lexicon.wanted[kind]))

    def _fillers(self, title: str, kind: str, taken: set[str], room: int) -> list[str]:
        return [self.scene.sentence(self.scene.filler(kind, taken), title) for _ in range(room)]


def occurs_once(value: str, text: str) -> bool:
    """Return whether `value` occurs exactly once in `text`, and not inside another word or number.

    Chinese has no spaces between words, so there any character may be next to a value, except a digit.
    """
    if text.count(value) != 1:
        return False
    start = text.index(value)
    around = text[max(0, start - 1) : start] + text[start + len(value) : start + len(value) + 1]
    continues = str.isalnum if text.isascii() else str.isdigit
    return not any(map(continues, around))
