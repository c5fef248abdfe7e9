"""StrategyQA-style questions: yes or no, deduced from two to four looked-up facts.

The verdict is drawn first, then a world in which it holds, so that both answers are equally frequent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rc1_lib.records import Language, Question
from rc1_lib.sources.embedded import yesno_belonging, yesno_measures, yesno_years
from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.lexicon import Wordings
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.setting import Kind
from rc1_lib.sources.embedded.word_files import open_words

KINDS: Mapping[str, Kind] = {**yesno_years.KINDS, **yesno_measures.KINDS, **yesno_belonging.KINDS}
_KEYS = tuple(KINDS)


def yesno(scene: Scene) -> Question | None:
    """Return one yes/no question, or None if this scene's names clash."""
    key = scene.pick(_KEYS)
    verdict = scene.chance(0.5)
    draft = Draft(scene)
    setting = KINDS[key].draw(scene, draft, verdict)
    draft.add_distractors()
    ask = scene.pick(wordings(scene.lexicon.lang)[key]).format_map(setting.fields)
    return draft.question("strategyqa", ask, "yes" if verdict else "no", setting.slots)


@cache
def wordings(lang: Language) -> Wordings:
    """Read the wordings of every kind from `words/<lang>/yesno.yaml`.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    return {key: lines.texts(KINDS[key].slots) for key, lines in open_words(f"{lang}/yesno").fields(KINDS).items()}
