"""HotpotQA-style questions: chains of two to four pages, and comparisons of two entities.

A chain starts at the entity that the question names and follows one relation per page. The question also states two
facts about that entity (`beside`), which identify it but do not lead to the answer. The kinds are in
`words/multihop.yaml`, their wordings in `words/<language>/multihop.yaml`.
"""

from __future__ import annotations

from rc1_lib.records import Question
from rc1_lib.sources.embedded.form import Form
from rc1_lib.sources.embedded.lookups import Lookups
from rc1_lib.sources.embedded.multihop_kinds import forms, wordings
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.scene import Scene

_CHAIN_SHARE = 0.64
_GAP = 0.12
"""Largest distance of two compared numbers, as a share of what they are drawn from: knowing one must not tell which of
the two is larger."""


def multihop(scene: Scene) -> Question | None:
    """Return one multi-hop question, or None if this scene's names clash."""
    chained = scene.chance(_CHAIN_SHARE)
    key, form = scene.pick([item for item in forms().items() if (item[1].asks == "leaf") == chained])
    lookups = Lookups(scene, form, _numbers(scene, form))
    return lookups.question(scene.pick(wordings(scene.lexicon.lang)[key]))


def _numbers(scene: Scene, form: Form) -> list[int | None]:
    """Draw the two numbers of a comparison, close to each other; either is the larger one equally often."""
    if form.asks == "leaf":
        return [None]
    relation = relations().by_name[form.legs[0].path[-1]]
    most = max(2, int(_GAP * (relation.high - relation.low)))
    gap = scene.number(1, most) * (1 if scene.chance(0.5) else -1)
    first = scene.number(relation.low + most, relation.high - most)
    return [first, first + gap]
