"""The price of asking where nothing is missing."""

from __future__ import annotations


def over_clarification_penalty(c: int, needs_clarification: bool, *, alpha: float, cap: int) -> float:
    """`alpha * min(c, cap)` where nothing had to be asked, else 0; to be subtracted from the main reward.

    Args:
        c: clarifying questions asked in the dialogue, at least 0.
        needs_clarification: whether something was missing from the prompt.
        alpha: price of one question.
        cap: questions beyond this one cost no more.

    Raises:
        ValueError: for a negative count, price or cap.
    """
    if c < 0 or alpha < 0 or cap < 0:
        raise ValueError(f"c, alpha and cap must not be negative, found c={c}, alpha={alpha}, cap={cap}")
    return 0.0 if needs_clarification else alpha * min(c, cap)
