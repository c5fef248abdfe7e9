"""The held-out prompts: that training has not seen them, and which ones they are."""

from __future__ import annotations

from collections.abc import Iterable

from rc1_lib.evaluation.episodes import EvaluationError
from rc1_lib.records import Row
from rc1_lib.workspace.artifacts import sha256_json


def check_held_out(prompts: Iterable[Row], trained: Iterable[Row]) -> None:
    """Nothing, if no prompt shares its row or its source question with a row that was trained on.

    Args:
        prompts: the rows to evaluate on: `id`, `source_id`.
        trained: every row that the warm start or PPO may have drawn: the same.

    Raises:
        EvaluationError: naming the first row that is not held out.
    """
    seen_ids, seen_sources = set(), set()
    for row in trained:
        seen_ids.add(row["id"])
        seen_sources.add(row["source_id"])
    shared = [row["id"] for row in prompts if row["id"] in seen_ids or row["source_id"] in seen_sources]
    if shared:
        raise EvaluationError(
            f"{len(shared)} prompts of the evaluation were trained on, or ask the same source question as a row that "
            f"was, for example '{shared[0]}'; evaluate on rows of other source questions"
        )


def prompts_sha256(prompts: Iterable[Row]) -> str:
    """SHA-256 over the rows in the order of their ids, so that the order of evaluating does not matter."""
    return sha256_json(sorted((dict(row) for row in prompts), key=lambda row: str(row["id"])))
