"""Folds of a cross-validation that keep every group of rows whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rc1_lib.errors import RC1Error


def group_folds(
    sizes: NDArray[np.float64], folds: int, seed: int, strata: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """The fold of each group: shuffled, then distributed by size, so that the folds are about equally large.

    Args:
        sizes: shape (groups,), weight of each group's rows.
        folds: how many, at least 2.
        seed: the same seed gives the same folds.
        strata: shape (groups,): groups of one stratum are spread evenly too; default: a single stratum.

    Returns:
        Shape (groups,): numbers from 0 to `folds` - 1, each of them present.

    Raises:
        RC1Error: for fewer than 2 folds or fewer groups than folds.
    """
    if folds < 2 or len(sizes) < folds:
        raise RC1Error(
            f"{len(sizes)} groups of rows cannot make {folds} folds: a cross-validation needs at least 2 folds, with "
            f"at least one group (source question) each; calibrate on more questions or lower cv"
        )
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    stratum = np.zeros(len(sizes), np.intp) if strata is None else strata
    dealt = shuffled[np.lexsort((-sizes[shuffled], stratum[shuffled]))]
    # Back and forth (0 1 2 2 1 0 ...), so that no fold gets the larger group of every round.
    one_round = np.append(np.arange(folds), np.arange(folds)[::-1])
    fold = np.empty(len(sizes), np.intp)
    fold[dealt] = np.resize(one_round, len(sizes))
    return fold
