"""HotpotQA-style questions: chains of two to four pages, and comparisons of two entities.

A chain starts at the entity that the question names and follows one relation per page. The question also states two
facts about that entity (`beside`), which identify it but do not lead to it. The kinds are in `words/multihop.yaml`,
their wordings in `words/<language>/multihop.yaml`.
"""

from __future__ import annotations

from rc1_lib.records import Question
from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.multihop_kinds import Chain, Contrast, kinds, wordings
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.scene import Fact, Scene

_CHAIN_SHARE = 0.64


def multihop(scene: Scene) -> Question | None:
    """One multi-hop question, or None if this scene's names do not fit each other."""
    if scene.chance(_CHAIN_SHARE):
        return _chain(scene, *scene.pick(tuple(kinds().chains.items())))
    return _contrast(scene, *scene.pick(tuple(kinds().contrasts.items())))


def _chain(scene: Scene, key: str, chain: Chain) -> Question | None:
    draft = Draft(scene)
    kind = relations().by_name[chain.hops[0]].subject
    start = at = scene.new(kind)
    told = tuple(scene.fact(relation) for relation in chain.beside)
    beside = told
    for relation in chain.hops:
        fact = scene.fact(relation)
        draft.look(at, (fact,), beside)
        at, beside = _value(fact), ()
    draft.crowd()
    ask = scene.pick(wordings(scene.tongue.lang)[key]).format(a=start, x=_value(told[0]), y=_value(told[1]))
    return draft.question("hotpotqa", ask, at, {start: kind})


def _contrast(scene: Scene, key: str, contrast: Contrast) -> Question | None:
    draft = Draft(scene)
    kind = relations().by_name[contrast.hop or contrast.number].subject
    a, b = scene.new(kind), scene.new(kind)
    beside = (scene.fact(contrast.beside), scene.fact(contrast.beside))
    first, second = scene.fact(contrast.number), scene.fact(contrast.number)
    while first[2] == second[2]:
        second = scene.fact(contrast.number)
    ends = [
        _look(draft, contrast, at, told, fact) for at, told, fact in zip((a, b), beside, (first, second), strict=True)
    ]
    answer = _decide(draft, contrast, ends, (first[2], second[2]))
    draft.crowd()
    ask = scene.pick(wordings(scene.tongue.lang)[key]).format(a=a, b=b, x=_value(beside[0]), y=_value(beside[1]))
    aliases = tuple(form.format(name=answer) for form in scene.tongue.also.get(kind, ()))
    return draft.question("hotpotqa", ask, answer, {a: kind, b: kind}, aliases)


def _look(draft: Draft, contrast: Contrast, at: str, told: Fact, fact: Fact) -> str:
    """Look up one side's number, over a hop if there is one, and return the entity that has it."""
    if not contrast.hop:
        draft.look(at, (fact,), (told,))
        return at
    hop = draft.scene.fact(contrast.hop)
    draft.look(at, (hop,), (told,))
    draft.look(hop[1], (fact,))
    return hop[1]


def _decide(draft: Draft, contrast: Contrast, ends: list[str], numbers: tuple[int, int]) -> str:
    """Compute the winner, or the difference."""
    left, right = numbers
    if contrast.asks == "difference":
        draft.compute(f"{max(numbers)}-{min(numbers)}", abs(left - right))
        return str(abs(left - right))
    least = contrast.asks == "least"
    first_wins = left < right if least else left > right
    draft.compute(f"{left}{'<' if least else '>'}{right}", first_wins)
    return ends[0] if first_wins else ends[1]


def _value(fact: Fact) -> str:
    """What a chain follows: the entity a fact leads to, or its number."""
    return fact[1] or str(fact[2])
