"""One question's random draws and wording: draws names without repetition and words facts as sentences."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

from rc1_lib.records import Language
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.tongues import tongue

T = TypeVar("T")
# A relation's name, the entity or word that it leads to, and its number; unused parts are empty and 0.
Fact = tuple[str, str, int]

# The share of sentences with an aside (and so a connector), and how often a question has that share.
_DENSITIES = (0.0, 0.1, 0.1, 0.35, 0.35, 0.35, 0.35, 0.6, 0.9, 1.0)


@cache
def _draws(lang: Language) -> Mapping[str, tuple[tuple[str, ...], bool, int, int]]:
    """Per relation, what a new fact is drawn from: names or words, whether they are names, least number, how many."""
    names, words = tongue(lang).names, tongue(lang).words
    return {
        name: (
            names.get(spec.other) or words.get(spec.other, ()),
            spec.other in names,
            spec.low,
            spec.high - spec.low + 1 if spec.high else 0,
        )
        for name, spec in relations().by_name.items()
    }


class Scene:
    """Draws everything that the question `id` needs; two scenes with the same key draw the same."""

    __slots__ = ("_draws", "_facts", "_random", "_used", "density", "id", "tongue")

    def __init__(self, name: str, key: str, chinese_share: float) -> None:
        """Name the question `name`, seed the generator with `key` and draw the language first."""
        self.id = name
        self._random = random.Random(key).random
        self.tongue = tongue("zh" if self._random() < chinese_share else "en")
        self._draws, self._facts = _draws(self.tongue.lang), self.tongue.facts
        self.density = self.pick(_DENSITIES)
        self._used: set[str] = set()

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, each as likely as the others."""
        return options[int(self._random() * len(options))]

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        """True in `share` of all draws."""
        return self._random() < share

    def new(self, kind: str) -> str:
        """A name of `kind` that this scene has not used yet."""
        names = self.tongue.names[kind]
        while (name := self.pick(names)) in self._used:
            pass
        self._used.add(name)
        return name

    def cast(self, *kinds: str) -> tuple[str, ...]:
        """New names, one of each kind given."""
        return tuple(map(self.new, kinds))

    def word(self, group: str) -> str:
        """A word of one of the language's word lists."""
        return self.pick(self.tongue.words[group])

    def fact(self, relation: str) -> Fact:
        """A new fact of this relation: an unused entity or a word, and a number if the relation has one."""
        options, named, low, width = self._draws[relation]
        other = ""
        if options:
            other = options[int(self._random() * len(options))]
            if named:
                while other in self._used:
                    other = self.pick(options)
                self._used.add(other)
        return (relation, other, low + int(self._random() * width) if width else 0)

    def filler(self, kind: str, taken: set[str]) -> Fact:
        """An irrelevant fact about an entity of `kind`, of a relation not yet in `taken` (to which it is added)."""
        options = relations().beside[kind]
        while (relation := self.pick(options)) in taken:
            pass
        taken.add(relation)
        return self.fact(relation)

    def tell(self, fact: Fact, subject: str) -> str:
        """The fact as one sentence, sometimes with an aside."""
        relation, other, number = fact
        wordings = self._facts[relation]
        text = wordings[int(self._random() * len(wordings))].format(s=subject, o=other, n=number)
        return self.aside(text) if self._random() < self.density else text

    def aside(self, sentence: str) -> str:
        """The sentence with a clause before or after it that adds a connector."""
        tongue = self.tongue
        if self._random() < 0.5 or sentence.startswith(tongue.joiners):
            return sentence[:-1] + self.pick(self.pick(tongue.suffixes))
        if sentence[0].isupper() and sentence.split(" ", 1)[0] not in self._used:
            sentence = sentence[0].lower() + sentence[1:]
        return self.pick(self.pick(tongue.prefixes)) + sentence
