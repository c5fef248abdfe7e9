"""A workspace with a pool of three hand-written rows, whose demonstrations answer, ask, and guess."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.difficulty.features import measure
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import recorded_write
from tests.environment.worlds import CLEAR, SHIP, STORY

PROMPT = STORY["messages"][:2]
ASKED: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call_0",
                "type": "function",
                "function": {"name": "ask_user", "arguments": '{"question":"How many jars did Prahule buy?"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_0", "name": "ask_user", "content": "It is 39."},
    {"role": "assistant", "content": "462 less 78. Answer: 384"},
]
EMBEDDED = {"source": "embedded"}
ROWS: list[dict[str, Any]] = [
    {
        **CLEAR,
        **EMBEDDED,
        "source_id": "b",
        "messages": [*PROMPT, {"role": "assistant", "content": "Answer: 384"}],
        "solved": True,
    },
    {**STORY, **EMBEDDED, "source_id": "c", "messages": [*PROMPT, *ASKED], "solved": True},
    {
        **SHIP,
        **EMBEDDED,
        "source_id": "a",
        "messages": [*PROMPT, {"role": "assistant", "content": "Answer: Ithwyn"}],
        "solved": False,
    },
]
BUCKETS = ("easy", "hard", "medium")
PRICES = (
    "training.reward.success=0.7", "training.reward.turn=0.04",
    "difficulty_beta=0.05", "overclar.alpha=0.25", "overclar.cap=3", "training.held_out.share=0.3",
)  # fmt: skip
REWARDS = {"pool-gsm8k-2": 0.7 * 0.95 - 0.04, "pool-gsm8k-1": 0.7 * 1.05 - 2 * 0.04, "pool-hotpotqa-1": 0.0}
"""Row -> the hand-computed reward of its demonstration: easy and clear, hard and asked, guessed."""


def small_run(root: Path, *overrides: str) -> Run:
    """A run with pool, metrics and balanced pool of the three rows."""
    run = open_run(profile="local", workspace=root, overrides=(*PRICES, *overrides))
    record(run, "".join(json.dumps(row) + "\n" for row in ROWS))
    return run


def record(run: Run, rows: str) -> None:
    """Write pool, metrics and balanced pool (the whole pool) as the run's own steps would."""
    config = run.config
    pool = run.workspace.path(config.pool.path)
    pool.parent.mkdir(parents=True, exist_ok=True)
    pool.write_text(rows)
    buckets = pl.Series("bucket", BUCKETS[: len(rows.splitlines())])
    metrics = measure(read_rows(pool)).with_columns(buckets)
    for one, content in ((METRICS, metrics.write_ndjson().encode()), (BALANCED, rows.encode())):
        manifest = {"kind": one.name, "inputs": one.inputs(run)}
        with recorded_write(run.workspace, one.where(run), manifest) as stream:
            stream.write(content)


def pool_of(run: Run) -> Path:
    """The run's balanced pool."""
    return run.workspace.path(run.config.seed_pool)


def turns_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The assistant's messages of a row."""
    return [message for message in row["messages"] if message["role"] == "assistant"]
