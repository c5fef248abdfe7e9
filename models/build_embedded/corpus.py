"""What the embedded model learns from: dialogues by the scripted expert, on questions of no pool and no evaluation.

The questions come from the same generator as the pool's, with other seeds, and are worded by the same templates. The
expert asks where something is missing in the first corpus, and almost everywhere alike in the last one. So the model is
good with its tools, sees what is missing, and is mediocre at deciding when to ask.
"""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor
from typing import TypedDict

import numpy as np
from pydantic import BaseModel

from rc1_lib.config.data import Pool
from rc1_lib.config.file import load_config
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import Pack, load_pack
from rc1_lib.records import BUCKETS, Message, Task
from rc1_lib.sources.embedded import generate
from rc1_lib.workspace.artifacts import PROJECT_ROOT


class Corpus(BaseModel, extra="forbid"):
    """A corpus of the recipe."""

    seed: int
    tasks: list[Task]
    overrides: list[str]
    made_up: bool
    rows: int
    per_shard: int
    workers: int
    max_tokens: int
    held_out: int


class Demonstration(TypedDict):
    """What is learned from a row: its dialogue, and whether the expert made up the missing information."""

    messages: list[Message]
    made_up: bool


def demonstrations(corpus: Corpus, pool: str) -> list[Demonstration]:
    """Return the rows of a corpus, shuffled; `pool` names the configuration to which its overrides apply."""
    config = load_config(PROJECT_ROOT / pool, corpus.overrides)
    templates = load_pack(PROJECT_ROOT / config.pool.templates_dir)
    shards = corpus.tasks * max(1, round(corpus.rows / (corpus.per_shard * len(corpus.tasks))))
    first = -(corpus.seed * 1000 + 1)  # negative seeds, which no pool or evaluation uses
    rows: list[Demonstration] = []
    with ProcessPoolExecutor(corpus.workers) as executor:
        jobs = [
            executor.submit(_shard, task, corpus.per_shard, first - number, config.pool, templates)
            for number, task in enumerate(shards)
        ]
        for number, job in enumerate(jobs, start=1):
            rows += job.result()
            print(f"dialogues: {number} of {len(jobs)} shards", flush=True)
    np.random.default_rng(corpus.seed).shuffle(rows)
    return rows


def _shard(task: Task, questions: int, seed: int, pool: Pool, pack: Pack) -> list[Demonstration]:
    rng = random.Random(f"base/{task}/{seed}")
    weights = [pool.intended[bucket] for bucket in BUCKETS]
    rows: list[Demonstration] = []
    for index, question in enumerate(generate(task, questions, seed, 0.0)):
        recipe = rng.choices(BUCKETS, weights)[0]
        row = write_row(PlannedRow(f"base-{task}-{seed}-{index}", "base", question, 0), recipe, pool, pack)
        if row is not None:
            rows.append({"messages": row["messages"], "made_up": row["needs_clarification"] and not row["asked"]})
    return rows
