"""The rows of a trial: a few embedded questions, posed by the recipes of the configured pool. No gate looks at them."""

from __future__ import annotations

import itertools
from pathlib import Path

import orjson

from rc1_lib.config.run_config import RunConfig
from rc1_lib.pool.templates import load_pack
from rc1_lib.sources.embedded import EMBEDDED_TASKS
from rc1_lib.text.tokens import text_length
from rc1_lib.training.embedded.corpus import Shard, demonstrations
from rc1_lib.workspace.artifacts import Workspace, atomic_write

_QUESTIONS, _SEED = 60, -1
"""Of every task; enough for all three buckets on both sides."""


def write_trial_rows(workspace: Workspace, config: RunConfig, templates: Path) -> None:
    """Write them where a run reads its balanced pool and its difficulty; a row's bucket is its recipe's.

    Args:
        workspace: of the trial.
        config: of the run.
        templates: the folder of the pack that words them.
    """
    pack = load_pack(templates)
    shards = (Shard(task, _QUESTIONS, _SEED) for task in EMBEDDED_TASKS)
    rows = list(itertools.chain.from_iterable(demonstrations(shard, config.pool, pack) for shard in shards))
    with atomic_write(workspace.path(config.seed_pool)) as stream:
        stream.writelines(orjson.dumps(row) + b"\n" for row in rows)
    with atomic_write(workspace.path(config.difficulty.metrics_path)) as stream:
        for row in rows:
            words = sum(text_length(message["content"] or "") for message in row["messages"])
            stream.write(orjson.dumps({"id": row["id"], "bucket": row["recipe"], "len_tokens": words}) + b"\n")
