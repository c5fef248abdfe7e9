"""HotpotQA-style questions: chains of two to four pages, and comparisons of two entities.

A chain starts at the entity that the question names and follows one relation per page. The question also states two
facts about that entity (`beside`), which identify it but do not lead to the answer. The kinds are in
`words/multihop.yaml`, their wordings in `words/<language>/multihop.yaml`.
"""

from __future__ import annotations

from rc1_lib.records import Question
from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.multihop_kinds import Chain, Contrast, kinds, wordings
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.scene import Fact, Scene

_CHAIN_SHARE = 0.64


def multihop(scene: Scene) -> Question | None:
    """Return one multi-hop question, or None if this scene's names clash."""
    if scene.chance(_CHAIN_SHARE):
        return _chain(scene, *scene.pick(tuple(kinds().chains.items())))
    return _contrast(scene, *scene.pick(tuple(kinds().contrasts.items())))


def _chain(scene: Scene, key: str, chain: Chain) -> Question | None:
    draft = Draft(scene)
    kind = relations().by_name[chain.hops[0]].subject
    start = at = scene.new(kind)
    stated = tuple(scene.fact(relation) for relation in chain.beside)
    extra = stated
    for relation in chain.hops:
        fact = scene.fact(relation)
        draft.look(at, (fact,), extra)
        at, extra = _value(fact), ()
    draft.add_distractors()
    ask = scene.pick(wordings(scene.lexicon.lang)[key]).format(a=start, x=_value(stated[0]), y=_value(stated[1]))
    return draft.question("hotpotqa", ask, at, {start: kind})


def _contrast(scene: Scene, key: str, contrast: Contrast) -> Question | None:
    draft = Draft(scene)
    kind = relations().by_name[contrast.hop or contrast.number].subject
    a, b = scene.new(kind), scene.new(kind)
    stated = (scene.fact(contrast.beside), scene.fact(contrast.beside))
    first, second = scene.fact(contrast.number), scene.fact(contrast.number)
    while first[2] == second[2]:
        second = scene.fact(contrast.number)
    ends = [
        _look(draft, contrast, at, extra, fact) for at, extra, fact in zip((a, b), stated, (first, second), strict=True)
    ]
    answer = _decide(draft, contrast, ends, (first[2], second[2]))
    draft.add_distractors()
    ask = scene.pick(wordings(scene.lexicon.lang)[key]).format(a=a, b=b, x=_value(stated[0]), y=_value(stated[1]))
    aliases = tuple(form.format(name=answer) for form in scene.lexicon.also.get(kind, ()))
    return draft.question("hotpotqa", ask, answer, {a: kind, b: kind}, aliases)


def _look(draft: Draft, contrast: Contrast, at: str, extra: Fact, fact: Fact) -> str:
    """Look up the number of one side, after a hop if the contrast has one, and return the entity that has it."""
    if not contrast.hop:
        draft.look(at, (fact,), (extra,))
        return at
    hop = draft.scene.fact(contrast.hop)
    draft.look(at, (hop,), (extra,))
    draft.look(hop[1], (fact,))
    return hop[1]


def _decide(draft: Draft, contrast: Contrast, ends: list[str], numbers: tuple[int, int]) -> str:
    """Add the calculation and return its answer: the entity that wins, or the difference."""
    left, right = numbers
    if contrast.asks == "difference":
        draft.compute(f"{max(numbers)}-{min(numbers)}", abs(left - right))
        return str(abs(left - right))
    least = contrast.asks == "least"
    first_wins = left < right if least else left > right
    draft.compute(f"{left}{'<' if least else '>'}{right}", first_wins)
    return ends[0] if first_wins else ends[1]


def _value(fact: Fact) -> str:
    """Return the entity that a fact leads to, or its number as text."""
    return fact[1] or str(fact[2])
