"""Writes a question about looked-up facts: its world as pages, the worked solution, and what can be missing from it.

Three things may be done to it later: a needed fact can be made illegible (`gone`), a second thing can be added that the
question's description fits as well (`ambiguous`, a `Twin`), and a fact that nobody needs can be illegible (a `Decoy`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.records import Decoy, Passage, Question, Slot, Step, Twin
from rc1_lib.sources.embedded.form import Form, Leaf, Leg
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.scene import Fact, Scene

# Numbers of distractor pages, mostly small, since pages cost time and a small model's context.
_DISTRACTORS = (3, 3, 4, 4, 5, 6)
_TWIN_PAGES = 2
"""Most pages of a thing that may have a twin: a prompt may have to quote both."""
_TRIES = 60

Walk = list[tuple[str, Fact]]
"""The facts of a leg, in order, each with the entity whose page states it."""


@dataclass(frozen=True, slots=True)
class _Page:
    """One page: its sentences with needed facts, those that describe the entity, and the page itself."""

    passage: Passage
    needed: tuple[str, ...]
    described: tuple[str, ...]
    taken: frozenset[str]


class Lookups:
    """One drawn world and the question about it.

    Distractor pages state the same relations of other entities, so that a careless reader picks the wrong one.
    """

    __slots__ = ("_ends", "_form", "_leaves", "_number", "_pages", "_scene", "_stated", "_walks", "fields")

    def __init__(
        self, scene: Scene, form: Form, numbers: Sequence[int | None], number: int = 0, *, holds: bool = True
    ) -> None:
        """Draw names and facts.

        Args:
            form: the kind of question.
            numbers: for each leg the number that it leads to; None to draw what it leads to.
            number: the number that the question states; 0 if it states none.
            holds: for a verdict about two things, whether they are the same.
        """
        self._scene, self._form, self._number = scene, form, number
        self.fields: dict[str, str] = {letter: scene.new(start.kind) for letter, start in form.starts.items()}
        self._stated: dict[str, list[Fact]] = {}
        for letter, start in form.starts.items():
            facts = [scene.fact(relation) for relation in start.stated]
            self.fields |= {slot: _value(fact) for slot, fact in zip(start.stated.values(), facts, strict=True)}
            self._stated[letter] = facts
        kinds = form.kinds()
        for slot in form.same or ():
            if slot.isalpha() and slot not in self.fields:
                self.fields[slot] = scene.new(kinds[slot])
        if form.counts:
            self.fields["n"] = str(number)
        self._walks: list[Walk] = []
        for place, (leg, leaf) in enumerate(zip(form.legs, numbers, strict=True)):
            walk = _walk(scene, leg, self.fields[leg.start], leaf if leaf is not None else self._shared(place, holds))
            if leg.names:
                self.fields[leg.names] = walk[-1][1][1]
            self._walks.append(walk)
        self._ends = [walk[-1][0] for walk in self._walks]
        self._leaves = [_leaf(walk[-1][1]) for walk in self._walks]
        self._pages = self._written(self._walks, {self.fields[at]: facts for at, facts in self._stated.items()})

    def question(self, wording: str) -> Question | None:
        """Return the finished question; None if nothing can be missing from it."""
        scene, form = self._scene, self._form
        ask = wording.format(**self.fields)
        answer = form.answer(self._ends, self._leaves, self._number, self.fields)
        distractors = self._distractors()
        passages = (*(page.passage for page in self._pages.values()), *distractors)
        slot, twin = self._gone(ask, answer, passages), self._twin(ask, answer)
        if slot is None and twin is None:
            return None
        end = relations().by_name[form.legs[0].path[-1]].subject
        also = scene.lexicon.also.get(end, ()) if form.asks in ("least", "most") else ()
        return Question(
            id=scene.id,
            task=form.task,
            source="embedded",
            lang=scene.lexicon.lang,
            ask=ask,
            support=tuple(sentence for page in self._pages.values() for sentence in page.needed),
            passages=passages,
            steps=(*_reading(self._pages), *self._sums(self._leaves)),
            answer=answer,
            aliases=tuple(name.format(name=answer) for name in also),
            slot=slot,
            twin=twin,
            decoy=self._decoy(),
        )

    def _shared(self, place: int, holds: bool) -> str | None:
        """Return what a leg has to lead to for the verdict to hold; None if it may be anything new."""
        if not self._form.same or not holds:
            return None
        first, second = self._form.same
        if second.isalpha():
            return self.fields[second] if str(place) == first else None
        return str(_leaf(self._walks[0][-1][1])) if str(place) == second else None

    def _sums(self, leaves: Sequence[Leaf]) -> list[Step]:
        if self._form.asks == "leaf" or self._form.same:
            return []
        return [Step("calc", expression, result) for expression, result in self._form.works(leaves, self._number)]

    def _written(self, walks: Iterable[Walk], stated: Mapping[str, Sequence[Fact]]) -> dict[str, _Page]:
        """Write the pages of some walks, in the order of look-up."""
        by_title: dict[str, list[Fact]] = {}
        for walk in walks:
            for title, fact in walk:
                by_title.setdefault(title, []).append(fact)
        return {title: self._page(title, facts, stated.get(title, ())) for title, facts in by_title.items()}

    def _page(self, title: str, needed: Sequence[Fact], stated: Sequence[Fact]) -> _Page:
        scene = self._scene
        sentences = tuple(scene.sentence(fact, title) for fact in needed)
        described = tuple(scene.sentence(fact, title) for fact in stated)
        taken = {fact[0] for fact in (*needed, *stated)}
        kind = relations().by_name[needed[0][0]].subject
        room = scene.number(0, 1) if described else scene.number(1, 2)
        others = [*described, *(scene.sentence(scene.filler(kind, taken), title) for _ in range(room))]
        cut = scene.number(0, len(others))
        text = scene.lexicon.joint.join((*others[:cut], *sentences, *others[cut:]))
        return _Page(Passage(title, text), sentences, described, frozenset(taken))

    def _distractors(self) -> list[Passage]:
        """Return three to six pages about other entities of this world."""
        scene, found = self._scene, []
        needed = [fact[0] for walk in self._walks for _, fact in walk]
        for _ in range(scene.pick(_DISTRACTORS)):
            relation = scene.pick(needed)
            kind = relations().by_name[relation].subject
            title = scene.new(kind)
            first = scene.sentence(scene.fact(relation), title)
            second = scene.sentence(scene.filler(kind, {relation}), title)
            found.append(Passage(title, first + scene.lexicon.joint + second))
        return found

    def _gone(self, ask: str, answer: str, passages: Sequence[Passage]) -> Slot | None:
        """Draw a needed fact to make illegible: a number, or the next entity of a chain, but never the answer."""
        scene, fitting = self._scene, []
        for walk in self._walks:
            for place, (title, fact) in enumerate(walk):
                hides = tuple(at for at, _ in walk[place + 1 :])
                value = fact[1] if hides else str(fact[2] or "")
                asked_for = fact[0] in scene.lexicon.wanted_facts
                if not value or not asked_for or value == answer or (not hides and self._form.asks == "leaf"):
                    continue
                seen = [page for page in passages if page.title not in hides]
                if sum(text.count(value) for page in seen for text in (page.title, page.text)) + ask.count(value) == 1:
                    fitting.append((value, hides, title, fact[0]))
        if not fitting:
            return None
        value, hides, title, relation = scene.pick(fitting)
        wanted = scene.lexicon.wanted_facts[relation].format(s=title)
        return Slot("story", value, scene.pick(scene.lexicon.vague["gap"]), wanted, "gone", hides)

    def _twin(self, ask: str, answer: str) -> Twin | None:
        """Draw a second thing that fits what the question says of one it names, and leads to another answer."""
        scene, form = self._scene, self._form
        letters = [
            letter
            for letter in form.starts
            if self._stated[letter]
            and occurs_once(self.fields[letter], ask)
            and all(len(leg.path) <= _TWIN_PAGES for leg in form.legs if leg.start == letter)
        ]
        if not letters:
            return None
        letter = scene.pick(letters)
        name, kind = scene.new(form.starts[letter].kind), form.starts[letter].kind
        for attempt in range(_TRIES):
            walks = [
                _walk(scene, leg, name, self._other(place, attempt)) if leg.start == letter else self._walks[place]
                for place, leg in enumerate(form.legs)
            ]
            leaves, ends = [_leaf(walk[-1][1]) for walk in walks], [walk[-1][0] for walk in walks]
            other = form.answer(ends, leaves, self._number, self.fields)
            if other != answer:
                break
        else:
            return None
        own = [walk for walk, leg in zip(walks, form.legs, strict=True) if leg.start == letter]
        written = self._written(own, {name: self._stated[letter]})
        read = {**self._pages, **written}
        order = dict.fromkeys(title for walk in walks for title, _ in walk)
        vague = scene.pick(scene.lexicon.vague[kind])
        if ask.startswith(self.fields[letter]):
            vague = vague[0].upper() + vague[1:]
        wanted = scene.pick(scene.lexicon.wanted[kind])
        return Twin(
            slot=Slot("ask", self.fields[letter], vague, wanted, "ambiguous"),
            described=self._pages[self.fields[letter]].described,
            support=tuple(text for page in written.values() for text in (*page.described, *page.needed)),
            passages=tuple(page.passage for page in written.values()),
            steps=(*_reading({title: read[title] for title in order}), *self._sums(leaves)),
            answer=other,
        )

    def _other(self, place: int, attempt: int) -> Leaf | None:
        """Propose what the twin's leg leads to; None to draw anything new."""
        form, scene, leaf = self._form, self._scene, self._leaves[place]
        if isinstance(leaf, int):
            reach = 8 + 4 * attempt
            return None if form.asks == "leaf" else max(2, leaf + scene.number(1, reach) * scene.pick((-1, 1)))
        if not form.same:
            return None
        names = [self.fields[slot] if slot.isalpha() else self._leaves[int(slot)] for slot in form.same]
        if names[0] == names[1] or str(place) not in form.same:
            return None
        return next(name for name in names if name != leaf)

    def _decoy(self) -> Decoy | None:
        """Draw an illegible fact that nobody needs, for a needed page."""
        scene, known = self._scene, relations().by_name
        title = scene.pick(tuple(self._pages))
        page = self._pages[title]
        kind = known[next(fact[0] for walk in self._walks for at, fact in walk if at == title)].subject
        needed = {fact[0] for walk in self._walks for _, fact in walk}
        options = [
            name
            for name, relation in known.items()
            if relation.subject == kind and name not in page.taken | needed and len(relation.slots) == 2
        ]
        gap = scene.pick(scene.lexicon.vague["gap"])
        return Decoy(title, scene.sentence((scene.pick(options), gap, gap), title))  # type: ignore[arg-type]


def _walk(scene: Scene, leg: Leg, at: str, leaf: Leaf | None) -> Walk:
    """Draw the facts of a leg from `at` to `leaf`, or to anything new if that is None."""
    walk: Walk = []
    for relation in leg.path:
        fact = scene.fact(relation)
        walk.append((at, fact))
        at = fact[1]
    title, (relation, other, number) = walk[-1]
    if isinstance(leaf, int):
        number = leaf
    elif leaf is not None:
        other = leaf
    walk[-1] = (title, (relation, other, number))
    return walk


def _leaf(fact: Fact) -> Leaf:
    return fact[2] or fact[1]


def _value(fact: Fact) -> str:
    """Return the entity that a fact leads to, or its number as text."""
    return fact[1] or str(fact[2])


def _reading(pages: Mapping[str, _Page]) -> list[Step]:
    return [Step("wiki", title, page.passage.text) for title, page in pages.items()]


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
