"""Questions of reasoning-gym, which invents them: `sources.hub: {any_number: "reasoning-gym:gsm_symbolic"}`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout

from rc1_lib.errors import SourceError
from rc1_lib.records import Task
from rc1_lib.runtime.progress import report_progress
from rc1_lib.sources.columns import require_rule
from rc1_lib.sources.loaded import Entry, Loaded, collect, require_questions
from rc1_lib.task_specs import task_spec

PREFIX = "reasoning-gym:"
NUMBERS = (
    "aiw", "basic_arithmetic", "binary_alternation", "chain_sum", "coin_flip", "count_bits", "count_primes",
    "decimal_arithmetic", "decimal_chain_sum", "gcd", "gsm_symbolic", "largest_island", "lcm", "leg_counting",
    "letter_counting", "maze", "number_format", "number_sequence", "products", "rectangle_count", "rotten_oranges",
    "simple_equations", "simple_geometry",
)  # fmt: skip
WORDS = (
    "acre", "bf", "caesar_cipher", "calendar_arithmetic", "color_cube_rotation", "family_relationships", "figlet_font",
    "isomorphic_strings", "letter_jumble", "mahjong_puzzle", "needle_haystack", "ransom_note", "spell_backward",
    "string_manipulation", "syllogism", "zebra_puzzles",
)  # fmt: skip
"""With the numbers, the tasks of 0.1.25 with one right answer: others accept what a comparison with it rejects."""
_DRAWN = ("figlet_font", "largest_island", "maze", "rectangle_count", "rotten_oranges")
"""Tasks whose questions are pictures of several lines, but prompts are running text."""
_REPORTED = 50
"""Questions between two reports of progress: some tasks take a second for each."""
POSABLE = tuple(name for name in (*NUMBERS, *WORDS) if name not in _DRAWN)


def load_gym(task: Task, name: str, count: int, seed: int) -> Loaded:
    """Invent `count` questions of a task of reasoning-gym; the same arguments give the same questions.

    Args:
        task: the task of RC1 that their answers belong to.
        name: `reasoning-gym:` and the name of its task.

    Raises:
        SourceError: when its task is not one of `POSABLE`, or its answers do not fit `task`.
        ModuleNotFoundError: when the extra `rule-tests` is not installed.
    """
    known = name.removeprefix(PREFIX)
    if known not in POSABLE:
        raise SourceError(
            f"sources.hub.{task}: found '{name}', expected {PREFIX}TASK with a task that has one right answer and is "
            f"running text: {', '.join(POSABLE)}"
        )
    # `collect` leaves out questions that repeat: a small task has few different ones.
    loaded = collect(_entries(known, count, seed), task_spec(task).parse, 0.0)
    return require_rule(task, require_questions(loaded, name), name, "sources.hub")


def _entries(name: str, count: int, seed: int) -> Iterator[Entry]:
    import reasoning_gym

    with redirect_stdout(sys.stderr):  # some of its tasks print while they invent questions
        made = reasoning_gym.create_dataset(name, size=count, seed=seed)
        for index in range(count):
            if index % _REPORTED == 0:
                report_progress(f"{PREFIX}{name}", index, count)
            entry = made[index]
            record = {"question": entry["question"], "answer": entry["answer"]}
            yield Entry(record, index, name, f"{PREFIX}{name}", f"entry {index} of seed {seed}")
    report_progress(f"{PREFIX}{name}", count, count)
