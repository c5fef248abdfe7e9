"""StrategyQA-style questions: yes or no, deduced from two to four looked-up facts.

The verdict is drawn first and the world is made to fit it, so that both answers are equally frequent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rc1_lib.records import Question
from rc1_lib.sources.embedded import yesno_belonging, yesno_measures, yesno_years
from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.setting import Setting

Kind = Callable[[Scene, Draft, bool], Setting]

KINDS: Mapping[str, Kind] = {**yesno_years.KINDS, **yesno_measures.KINDS, **yesno_belonging.KINDS}
_KEYS = tuple(KINDS)


def yesno(scene: Scene) -> Question | None:
    """One yes/no question, or None where this scene's names do not fit each other."""
    key = scene.pick(_KEYS)
    verdict = scene.chance(0.5)
    draft = Draft(scene)
    setting = KINDS[key](scene, draft, verdict)
    draft.crowd()
    ask = scene.pick(scene.tongue.yesno[key]).format_map(setting.fields)
    return draft.question("strategyqa", ask, "yes" if verdict else "no", setting.slots)
