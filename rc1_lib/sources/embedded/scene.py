"""The random draws of one question: names without repetition, and facts worded as sentences."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

from rc1_lib.records import Language
from rc1_lib.sources.embedded.lexicon import lexicon
from rc1_lib.sources.embedded.relations import relations

T = TypeVar("T")
# The name of a relation, the entity or word that it leads to (or ""), and its number (or 0).
Fact = tuple[str, str, int]

# Shares of sentences with an aside (and so a connector); each question draws one of them.
_DENSITIES = (0.0, 0.1, 0.1, 0.35, 0.35, 0.35, 0.35, 0.6, 0.9, 1.0)


@cache
def _draws(lang: Language) -> Mapping[str, tuple[tuple[str, ...], bool, int, int]]:
    """Return what a fact of each relation is drawn from: options, whether these are names, lowest number, range."""
    names, words = lexicon(lang).names, lexicon(lang).words
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
    """Makes all random draws of one question; two scenes with the same key draw the same."""

    __slots__ = ("_draws", "_facts", "_random", "_used", "density", "id", "lexicon")

    def __init__(self, name: str, key: str, chinese_share: float) -> None:
        """Seed the generator with `key` and draw the language; `name` is the question's id."""
        self.id = name
        self._random = random.Random(key).random
        self.lexicon = lexicon("zh" if self._random() < chinese_share else "en")
        self._draws, self._facts = _draws(self.lexicon.lang), self.lexicon.facts
        self.density = self.pick(_DENSITIES)
        self._used: set[str] = set()

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of `options`, all with the same probability."""
        return options[int(self._random() * len(options))]

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        """Return True with probability `share`."""
        return self._random() < share

    def new(self, kind: str) -> str:
        """Draw a name of `kind` that this scene has not used yet."""
        names = self.lexicon.names[kind]
        while (name := self.pick(names)) in self._used:
            pass
        self._used.add(name)
        return name

    def cast(self, *kinds: str) -> tuple[str, ...]:
        """Draw a new name of each kind given."""
        return tuple(map(self.new, kinds))

    def word(self, group: str) -> str:
        """Draw a word from one of the language's word lists."""
        return self.pick(self.lexicon.words[group])

    def fact(self, relation: str) -> Fact:
        """Draw a fact of this relation: an unused entity or a word, and a number if the relation has one."""
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
        """Draw an irrelevant fact about an entity of `kind` with a relation not in `taken`, and add it to `taken`."""
        options = relations().beside[kind]
        while (relation := self.pick(options)) in taken:
            pass
        taken.add(relation)
        return self.fact(relation)

    def sentence(self, fact: Fact, subject: str) -> str:
        """Word a fact as one sentence, sometimes with an aside."""
        relation, other, number = fact
        wordings = self._facts[relation]
        text = wordings[int(self._random() * len(wordings))].format(s=subject, o=other, n=number)
        return self.aside(text) if self._random() < self.density else text

    def aside(self, sentence: str) -> str:
        """Add a clause with a connector before or after the sentence."""
        lexicon = self.lexicon
        if self._random() < 0.5 or sentence.startswith(lexicon.joiners):
            return sentence[:-1] + self.pick(self.pick(lexicon.suffixes))
        if sentence[0].isupper() and sentence.split(" ", 1)[0] not in self._used:
            sentence = sentence[0].lower() + sentence[1:]
        return self.pick(self.pick(lexicon.prefixes)) + sentence
