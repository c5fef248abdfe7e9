"""Training data of the bundled base: demonstrations on synthetic questions that are in no pool and no evaluation.

The questions come from the same generator as the pool's, with other seeds, and are worded by the same templates. The
scripted expert asks where something is missing in the first corpus, and almost everywhere alike in the last one. So the
base is good with its tools, sees what is missing, and is mediocre at deciding when to ask.
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
from rc1_lib.sources.embedded import generate


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of the corpus: a number of questions of one task, with their own seed."""

    task: Task
    questions: int
    seed: int


class Demonstration(TypedDict):
    """What is learned from a row: its dialogue, and whether the expert made up the missing information."""

    messages: list[Message]
    made_up: bool


def shards(tasks: Sequence[Task], rows: int, seed: int, per_shard: int) -> list[Shard]:
    """Split a corpus of about `rows` rows into shards of `tasks` in turn."""
    rounds = max(1, round(rows / (per_shard * len(tasks))))
    # Negative seeds, which no pool or evaluation uses.
    first = -(seed * 1000 + 1)
    return [
        Shard(task, per_shard, first - number * len(tasks) - place)
        for number in range(rounds)
        for place, task in enumerate(tasks)
    ]


def demonstrations(shard: Shard, pool: Pool, pack: Pack) -> Iterator[Row]:
    """Yield the rows of a shard, posed by recipes in the pool's intended shares."""
    rng = random.Random(f"base/{shard.task}/{shard.seed}")
    weights = [pool.intended[bucket] for bucket in BUCKETS]
    for index, question in enumerate(generate(shard.task, shard.questions, shard.seed, 0.0)):
        recipe = rng.choices(BUCKETS, weights)[0]
        planned = PlannedRow(f"base-{shard.task}-{shard.seed}-{index}", "base", question, 0)
        row = write_row(planned, recipe, pool, pack)
        if row is not None:
            yield row


def written(parts: Sequence[Shard], pool: Pool, pack: Pack, workers: int) -> Iterator[list[Demonstration]]:
    """Yield the rows of every shard, in order. They do not depend on `workers`."""
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
