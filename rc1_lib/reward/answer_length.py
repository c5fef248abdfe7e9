"""The length of answers, which a judge must not mistake for quality.

That judges prefer long answers is known as verbosity bias (Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and
Chatbot Arena", 2023).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from rc1_lib.reward.rank_agreement import Vector, spearman
from rc1_lib.text.tokens import length


def add_answer_length(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `answer_length` (UInt32): words and punctuation marks of the last assistant message; 0 without one."""
    message = pl.element()
    said = message.filter(message.struct.field("role") == "assistant").struct.field("content")
    return (
        frame.with_columns(answer_length=pl.col("messages").list.eval(said).list.last().fill_null(""))
        .with_columns(answer_length=length("answer_length"))
    )  # fmt: skip


def length_correlation(scores: Vector, lengths: Vector, success: Vector, weights: Vector) -> float:
    """Rank correlation of scores with the answers' length among dialogues of the same outcome.

    Good answers may well be longer. So the correlation is computed separately for solved and unsolved dialogues, and
    the two are averaged by weight: what remains is a preference for length itself.

    Args:
        scores: shape (n,).
        lengths: shape (n,).
        success: shape (n,), 0 or 1.
        weights: shape (n,), the weight of each dialogue.

    Returns:
        In [-1, 1]; 0 if all answers of an outcome have the same length, since no length can be preferred then; NaN if
        the lengths vary and the scores do not.
    """
    total = found = 0.0
    groups = [same for outcome in (0.0, 1.0) if (same := success == outcome).any()]
    if all(np.unique(lengths[same]).size == 1 for same in groups):
        return 0.0
    for same in groups:
        correlation = spearman(scores[same], lengths[same], weights[same])
        if not np.isnan(correlation):
            found += float(weights[same].sum()) * correlation
            total += float(weights[same].sum())
    return found / total if total else float("nan")
