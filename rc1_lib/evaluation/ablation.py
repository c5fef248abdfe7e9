"""Evaluated episodes as the dialogues that `rc1_lib.reward.ablation.compare_policies` takes.

The evaluation asks whether a policy is better than the one it started from. The ablation asks what a part of the reward
does: of two policies trained alike but for the penalty, the one with it has to ask less where nothing is missing, and
be no longer and no worse. Its intervals resample prompts one by one, those of the evaluation whole source questions.
"""

from __future__ import annotations

import polars as pl

from rc1_lib.evaluation.episodes import EvaluationError, Mode, checked


def dialogues_of(frame: pl.DataFrame, *, policy: str, mode: Mode) -> pl.DataFrame:
    """One policy's episodes in one mode with the columns of an ablation; several seeds are several dialogues a prompt.

    Raises:
        EvaluationError: when it has none.
    """
    found = checked(frame).filter((pl.col("policy") == policy) & (pl.col("mode") == mode))
    if not found.height:
        raise EvaluationError(f"there is no {mode} episode of policy '{policy}'; evaluate it first")
    return found.select(
        "task", "bucket", "solved", "turns", prompt="row_id", clarifications="asked", needs_clarification="needs"
    )
