"""Chance: how often one can be right without the missing information, on prompts that need asking.

A policy that is right without asking more often than this has seen the missing piece somewhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rc1_lib.checks import defined
from rc1_lib.records import Row
from rc1_lib.sources.solvers import options_of

Prompt = tuple[str, str, int | None]
"""Task, gold answer, and number of possible answers without the missing piece; None if there is no limit to them."""
Options = Callable[[Row], int | None]
"""The number of answers that are possible without the missing piece; None if unlimited or unknown."""


@dataclass(frozen=True, slots=True)
class Chance:
    """The best share of right answers without the missing information.

    Attributes:
        overall: over all prompts that need asking, in [0, 1]; NaN if there are none.
        by_task: task -> the same over its prompts; only tasks that have some.
    """

    overall: float
    by_task: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, with None for undefined ones."""
        return {"overall": defined(self.overall), "by_task": dict(self.by_task)}


def chance(prompts: Iterable[Prompt]) -> Chance:
    """Compute chance from prompts that need asking.

    Of each task the better of two strategies counts: always give the most frequent answer, or draw one of a prompt's
    possible answers. A prompt with unlimited answers cannot be drawn right. Tasks are weighted by their prompts.
    """
    tasks: dict[str, list[Prompt]] = defaultdict(list)
    for task, answer, options in prompts:
        tasks[task].append((task, answer, options))
    by_task = {task: max(_best_constant(found), _best_draw(found)) for task, found in tasks.items()}
    count = sum(map(len, tasks.values()))
    right = sum(by_task[task] * len(found) for task, found in tasks.items())
    return Chance(right / count if count else float("nan"), by_task)


def chance_of(rows: Iterable[Row], options: Options = options_of) -> Chance:
    """Compute chance from the rows that need asking; by default their exact solvers count the options."""
    return chance((row["task"], row["answer"], options(row)) for row in rows if row["needs_clarification"])


def _best_constant(prompts: list[Prompt]) -> float:
    answers = Counter(answer.strip().casefold() for _, answer, _ in prompts)
    return max(answers.values()) / len(prompts)


def _best_draw(prompts: list[Prompt]) -> float:
    return sum(1 / options for _, _, options in prompts if options is not None) / len(prompts)
