"""A cache of the builder's measurements of the rows it wrote, so that the same bytes are not measured again.

To choose among the ways to pose a question, the builder measures every one of them. The results stay in this process,
under the hash of the written file; callers look them up by the hash of the existing file.
"""

from __future__ import annotations

import polars as pl

from rc1_lib.config.data import Difficulty

_KNOWN: dict[str, tuple[Difficulty, pl.DataFrame]] = {}


def know_metrics(sha256: str, config: Difficulty, metrics: pl.DataFrame) -> None:
    """Store the metrics of a file of rows, replacing what was stored before.

    Args:
        sha256: of the file's bytes, in hex.
        config: its bounds decided the buckets.
        metrics: one line per row, in the file's order, from `rc1_lib.difficulty.features.measure`.
    """
    _KNOWN.clear()
    _KNOWN[sha256] = (config, metrics)


def known_metrics(sha256: str, config: Difficulty) -> pl.DataFrame | None:
    """The metrics of a file of rows with this hash and these bounds; None if unknown."""
    by, metrics = _KNOWN.get(sha256, (None, None))
    return metrics if by == config else None
