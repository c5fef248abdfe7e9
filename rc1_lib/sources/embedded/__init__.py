"""The embedded source: questions about invented worlds in English and Chinese, generated with exact answers.

Nothing is downloaded or copied: names are made of syllables, and each question has its own world, from which its
answer follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rc1_lib.errors import SourceError
from rc1_lib.records import Question, Task
from rc1_lib.sources.embedded.multihop import multihop
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.stories import story
from rc1_lib.sources.embedded.yesno import yesno
from rc1_lib.sources.loaded import wording

__all__ = ["EMBEDDED_TASKS", "generate"]

_WRITERS: Mapping[Task, Callable[[Scene], Question | None]] = {
    "hotpotqa": multihop,
    "strategyqa": yesno,
    "gsm8k": story,
}
EMBEDDED_TASKS: tuple[Task, ...] = tuple(_WRITERS)
"""The tasks that have a generator; others need files."""


def generate(task: Task, count: int, seed: int, chinese_share: float = 0.2) -> list[Question]:
    """Generate `count` distinct questions of one task; the same arguments give the same questions.

    Args:
        task: one of `EMBEDDED_TASKS`.
        count: number of questions; question i does not depend on it.
        seed: any integer; questions of different seeds are unrelated.
        chinese_share: the probability that a question is Chinese, in [0, 1].

    Returns:
        Questions with the ids `embedded/<task>/<seed>/<number>`, numbered from 0, each with a slot.

    Raises:
        SourceError: when the task is unknown, `count` is negative, or `chinese_share` is outside [0, 1].
    """
    _check(task, count, chinese_share)
    seen: set[str] = set()
    return [_write(task, seed, index, chinese_share, seen) for index in range(count)]


def _check(task: str, count: int, chinese_share: float) -> None:
    if task not in _WRITERS:
        raise SourceError(f"The embedded source has no task {task!r}; use one of {', '.join(EMBEDDED_TASKS)}.")
    if count < 0:
        raise SourceError(f"The embedded source cannot generate {count} questions of {task}; ask for 0 or more.")
    if not 0.0 <= chinese_share <= 1.0:
        raise SourceError(f"The embedded source's chinese_share is {chinese_share}; set it between 0 and 1.")


def _write(task: Task, seed: int, index: int, chinese_share: float, seen: set[str]) -> Question:
    """Return question `index`: the first valid attempt that does not repeat an earlier question."""
    name, key = f"embedded/{task}/{seed}/{index}", f"{seed}/{task}/{index}"
    attempt = 0
    while True:
        question = _WRITERS[task](Scene(name, f"{key}/{attempt}" if attempt else key, chinese_share))
        attempt += 1
        if question is None:
            continue
        content = " ".join(wording(question)).lower()
        if content not in seen:
            seen.add(content)
            return question
