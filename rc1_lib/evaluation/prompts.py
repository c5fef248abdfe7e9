"""The held-out prompts: checks that training has not seen them, and fingerprints them."""

from __future__ import annotations

from collections.abc import Iterable

from rc1_lib.evaluation.episodes import EvaluationError
from rc1_lib.records import Row
from rc1_lib.workspace.artifacts import sha256_json


def check_held_out(prompts: Iterable[Row], trained: Iterable[Row]) -> None:
    """Check that no prompt shares its row or its source question with a row used in training.

    Args:
        prompts: the rows to evaluate on: `id`, `source_id`.
        trained: every row that SFT or PPO may have drawn, with the same columns.

    Raises:
        EvaluationError: names the first row that is not held out.
    """
    seen_ids, seen_sources = set(), set()
    for row in trained:
        seen_ids.add(row["id"])
        seen_sources.add(row["source_id"])
    shared = [row["id"] for row in prompts if row["id"] in seen_ids or row["source_id"] in seen_sources]
    if shared:
        raise EvaluationError(
            f"{len(shared)} prompts of the evaluation were used in training, or ask the same source question as a "
            f"training row, for example '{shared[0]}'; evaluate on rows of other source questions"
        )


def prompts_sha256(prompts: Iterable[Row]) -> str:
    """SHA-256 over the rows ordered by id, so that the order of evaluation does not matter."""
    return sha256_json(sorted((dict(row) for row in prompts), key=lambda row: str(row["id"])))
