"""HotpotQA-style questions: chains of two to four pages, and comparisons of two entities.

A chain starts at the entity that the question names and follows one relation a page. The question also tells
two things about that entity (`beside`), so that it is recognised without being found by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rc1_lib.records import Question
from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.relations import RELATIONS
from rc1_lib.sources.embedded.scene import Fact, Scene

_CHAIN_SHARE = 0.64


@dataclass(frozen=True, slots=True)
class Chain:
    """Relations to follow one after the other, and two more that the question tells of the first entity."""

    hops: tuple[str, ...]
    beside: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two entities, the hop that leads from each to what is compared (if any), and the number compared.

    `least` makes the smaller number win; `gap` asks for the difference instead of the winner.
    """

    number: str
    beside: str
    hop: str = ""
    least: bool = False
    gap: bool = False


CHAINS: Mapping[str, Chain] = {
    "birth_river": Chain(("born", "river"), ("home", "spouse")),
    "author_birth": Chain(("author", "born"), ("keeper", "pages")),
    "captain_guild": Chain(("captain", "guild"), ("owner", "launched")),
    "yard_founder": Chain(("yard", "founder"), ("owner", "port")),
    "guild_river": Chain(("seat", "river"), ("head", "members")),
    "builder_teacher": Chain(("builder", "teacher"), ("warden", "built")),
    "author_teacher_birth": Chain(("author", "teacher", "born"), ("keeper", "written")),
    "captain_town_year": Chain(("captain", "born", "founded"), ("owner", "length")),
    "founder_birth_river": Chain(("starter", "born", "river"), ("head", "opened")),
    "mouth_founder": Chain(("mouth", "founder"), ("ferry", "source")),
    "tower_people": Chain(("stands", "people"), ("warden", "height")),
    "teacher_guild_river": Chain(("teacher", "guild", "seat", "river"), ("home", "birth")),
    "author_guild_year": Chain(("author", "guild", "opened"), ("keeper", "pages")),
    "mouth_teacher_birth": Chain(("mouth", "founder", "teacher", "born"), ("ferry", "source")),
    "spouse_guild_head": Chain(("spouse", "guild", "head"), ("home", "birth")),
    "builder_home_council": Chain(("builder", "home", "council"), ("warden", "built")),
}

CONTRASTS: Mapping[str, Contrast] = {
    "older": Contrast("birth", "home", least=True),
    "longer_ship": Contrast("length", "yard"),
    "thicker_book": Contrast("pages", "keeper"),
    "longer_river": Contrast("miles", "ferry"),
    "older_town": Contrast("founded", "founder", least=True),
    "taller_tower": Contrast("height", "stands"),
    "bigger_guild": Contrast("members", "head"),
    "older_author": Contrast("birth", "keeper", hop="author", least=True),
    "older_captain": Contrast("birth", "owner", hop="captain", least=True),
    "bigger_yard": Contrast("people", "owner", hop="yard"),
    "age_gap": Contrast("birth", "home", gap=True),
    "page_gap": Contrast("pages", "keeper", gap=True),
    "people_gap": Contrast("people", "founder", gap=True),
}

_CHAIN_KEYS = tuple(CHAINS)
_CONTRAST_KEYS = tuple(CONTRASTS)


def multihop(scene: Scene) -> Question | None:
    """One multi-hop question, or None where this scene's names do not fit each other."""
    if scene.chance(_CHAIN_SHARE):
        return _chain(scene, scene.pick(_CHAIN_KEYS))
    return _contrast(scene, scene.pick(_CONTRAST_KEYS))


def _chain(scene: Scene, key: str) -> Question | None:
    chain = CHAINS[key]
    draft = Draft(scene)
    kind = RELATIONS[chain.hops[0]].subject
    start = at = scene.new(kind)
    told = tuple(scene.fact(relation) for relation in chain.beside)
    beside = told
    for relation in chain.hops:
        fact = scene.fact(relation)
        draft.look(at, (fact,), beside)
        at, beside = _value(fact), ()
    draft.crowd()
    ask = scene.pick(scene.tongue.hops[key]).format(a=start, x=_value(told[0]), y=_value(told[1]))
    return draft.question("hotpotqa", ask, at, {start: kind})


def _contrast(scene: Scene, key: str) -> Question | None:
    contrast = CONTRASTS[key]
    draft = Draft(scene)
    kind = RELATIONS[contrast.hop or contrast.number].subject
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
    ask = scene.pick(scene.tongue.hops[key]).format(a=a, b=b, x=_value(beside[0]), y=_value(beside[1]))
    aliases = (answer + "塔",) if kind == "work" and scene.tongue.lang == "zh" else ()
    return draft.question("hotpotqa", ask, answer, {a: kind, b: kind}, aliases)


def _look(draft: Draft, contrast: Contrast, at: str, told: Fact, fact: Fact) -> str:
    """Look up one side's number, over a hop where there is one; returns the entity that has it."""
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
    if contrast.gap:
        draft.compute(f"{max(numbers)}-{min(numbers)}", abs(left - right))
        return str(abs(left - right))
    first_wins = left < right if contrast.least else left > right
    draft.compute(f"{left}{'<' if contrast.least else '>'}{right}", first_wins)
    return ends[0] if first_wins else ends[1]


def _value(fact: Fact) -> str:
    """What a chain follows: the entity a fact leads to, or its number."""
    return fact[1] or str(fact[2])
