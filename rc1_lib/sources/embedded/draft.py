"""A question under construction: pages to look up, sums to calculate, and finally the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rc1_lib.records import Passage, Question, Slot, Step, Task
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.scene import Fact, Scene

# How many pages no step needs; mostly few, since they cost time and, for a small model, context.
_CROWDS = (3, 3, 4, 4, 5, 6)


class Draft:
    """Collects the look-ups and calculations of the worked solution, in order.

    Pages that no step needs (`crowd`) state the same relations of other entities, so that a careless reader errs.
    """

    __slots__ = ("_relations", "passages", "scene", "steps", "support")

    def __init__(self, scene: Scene) -> None:
        """Start with an empty solution."""
        self.scene = scene
        self.passages: list[Passage] = []
        self.steps: list[Step] = []
        self.support: list[str] = []
        self._relations: list[str] = []

    def look(self, title: str, needed: Sequence[Fact], beside: Sequence[Fact] = ()) -> None:
        """Write the page of `title` and look it up for the `needed` facts; the facts `beside` are only on the page."""
        scene = self.scene
        sentences = [scene.tell(fact, title) for fact in needed]
        self.support += sentences
        self._relations += [fact[0] for fact in needed]
        taken = {fact[0] for fact in (*needed, *beside)}
        others = [scene.tell(fact, title) for fact in beside]
        room = scene.number(0, 1) if others else scene.number(1, 2)
        others += self._fillers(title, relations().by_name[needed[0][0]].subject, taken, room)
        cut = scene.number(0, len(others))
        text = scene.tongue.joint.join((*others[:cut], *sentences, *others[cut:]))
        self.passages.append(Passage(title, text))
        self.steps.append(Step("wiki", title, text))

    def compute(self, expression: str, result: int | bool) -> None:
        """Calculate a sum, or a comparison with the result yes or no."""
        said = ("yes" if result else "no") if isinstance(result, bool) else str(result)
        self.steps.append(Step("calc", expression, said))

    def crowd(self) -> None:
        """Add three to six pages about other entities of this world."""
        scene = self.scene
        for _ in range(scene.pick(_CROWDS)):
            relation = scene.pick(self._relations)
            kind = relations().by_name[relation].subject
            title = scene.new(kind)
            needed = scene.tell(scene.fact(relation), title)
            beside = scene.tell(scene.filler(kind, {relation}), title)
            self.passages.append(Passage(title, needed + scene.tongue.joint + beside))

    def question(
        self, task: Task, ask: str, answer: str, slots: Mapping[str, str], aliases: tuple[str, ...] = ()
    ) -> Question | None:
        """The finished record; None if the drawn slot's text does not occur exactly once.

        `slots` maps the entities of the ask that can be withheld to their kinds.
        """
        value = self.scene.pick(tuple(slots))
        if not stands_once(value, ask):
            return None
        return Question(
            id=self.scene.id,
            task=task,
            source="embedded",
            lang=self.scene.tongue.lang,
            ask=ask,
            support=tuple(self.support),
            passages=tuple(self.passages),
            steps=tuple(self.steps),
            answer=answer,
            aliases=aliases,
            slot=self._slot(value, slots[value], ask),
        )

    def _slot(self, value: str, kind: str, ask: str) -> Slot:
        vague = self.scene.pick(self.scene.tongue.vague[kind])
        if ask.startswith(value):
            vague = vague[0].upper() + vague[1:]
        return Slot("ask", value, vague, self.scene.pick(self.scene.tongue.wanted[kind]))

    def _fillers(self, title: str, kind: str, taken: set[str], room: int) -> list[str]:
        return [self.scene.tell(self.scene.filler(kind, taken), title) for _ in range(room)]


def stands_once(value: str, text: str) -> bool:
    """Whether `value` occurs exactly once in `text`, not even inside another word or number.

    Chinese has no spaces between words: any character may be next to a value, but no digit next to a number.
    """
    if text.count(value) != 1:
        return False
    start = text.index(value)
    around = text[max(0, start - 1) : start] + text[start + len(value) : start + len(value) + 1]
    belongs = str.isalnum if text.isascii() else str.isdigit
    return not any(map(belongs, around))
