"""What the embedded base reads: demonstrations in worlds of its own, which no pool and no evaluation holds.

The worlds come from the same generator as the pool's, by other seeds, and are worded by the same templates. The teacher
asks by the same habit (because a prompt *sounds* vague), in the last corpus a little more where something is missing,
so that the base is competent with its tools and mediocre at deciding when to ask.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypedDict

from rc1_lib.config.data import Pool
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import Pack
from rc1_lib.records import BUCKETS, Message, Row, Task
from rc1_lib.runtime.progress import report_progress
from rc1_lib.sources.embedded import EMBEDDED_TASKS, generate


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of the corpus: so many questions of one task by one seed."""

    task: Task
    questions: int
    seed: int


class Demonstration(TypedDict):
    """What is learned of a row: its dialogue, and whether the teacher went on without the missing slot."""

    messages: list[Message]
    made_up: bool


def shards(rows: int, seed: int, per_shard: int) -> list[Shard]:
    """The parts of a corpus of about `rows` rows, equally many of every task."""
    rounds = max(1, round(rows / (per_shard * len(EMBEDDED_TASKS))))
    # Negative seeds: no pool or evaluation is built with one.
    return [Shard(task, per_shard, -(seed * 1000 + number + 1)) for number in range(rounds) for task in EMBEDDED_TASKS]


def demonstrations(shard: Shard, pool: Pool, pack: Pack) -> Iterator[Row]:
    """The rows of a shard, posed by recipes in the pool's intended shares."""
    rng = random.Random(f"base/{shard.task}/{shard.seed}")
    weights = [pool.intended[bucket] for bucket in BUCKETS]
    for index, question in enumerate(generate(shard.task, shard.questions, shard.seed, 0.0)):
        recipe = rng.choices(BUCKETS, weights)[0]
        planned = PlannedRow(f"base-{shard.task}-{shard.seed}-{index}", "base", question, 0)
        row = write_row(planned, recipe, pool, pack)
        if row is not None:
            yield row


def written(parts: Sequence[Shard], pool: Pool, pack: Pack, workers: int) -> Iterator[list[Demonstration]]:
    """The rows of every shard, in order; the same whatever `workers` is."""
    with ProcessPoolExecutor(workers) as executor:
        jobs = [executor.submit(_rows, shard, pool, pack) for shard in parts]
        for number, job in enumerate(jobs, start=1):
            yield job.result()
            report_progress("base: demonstrations", number, len(parts))


def _rows(shard: Shard, pool: Pool, pack: Pack) -> list[Demonstration]:
    return [
        {"messages": row["messages"], "made_up": row["needs_clarification"] and not row["asked"]}
        for row in demonstrations(shard, pool, pack)
    ]
