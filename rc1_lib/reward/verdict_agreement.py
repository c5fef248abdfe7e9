"""How far two judges' verdicts about the same dialogues agree, beyond chance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def kappa(first: ArrayLike, second: ArrayLike, weights: ArrayLike) -> float:
    """Compute Cohen's kappa of two columns of verdicts: (observed - expected) / (1 - expected) agreement.

    Source: Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960).

    Args:
        first: shape (n,), booleans.
        second: shape (n,), booleans.
        weights: shape (n,), frequency weights.

    Returns:
        At most 1; 0 if one column is constant; NaN if both are constant and equal, or without rows.
    """
    a, b = np.asarray(first, np.bool_), np.asarray(second, np.bool_)
    p, q = share(a, weights), share(b, weights)
    by_chance = p * q + (1 - p) * (1 - q)
    return (share(a == b, weights) - by_chance) / (1 - by_chance) if 1 - by_chance > 1e-12 else math.nan


def share(chosen: ArrayLike, weights: ArrayLike) -> float:
    """Compute the weighted share of a boolean column that is true; NaN without rows."""
    values, w = np.asarray(chosen, np.float64), np.asarray(weights, np.float64)
    total = w.sum()
    return float((w * values).sum() / total) if total else math.nan
