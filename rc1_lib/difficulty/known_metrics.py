"""What the builder measured of the rows it wrote: the same bytes are not measured a second time.

To choose among the ways a question can be posed, the builder measures every one of them as the metrics do. It stays in
this process, under the hash of what was written; whoever asks names the hash of what lies there.
"""

from __future__ import annotations

import polars as pl

from rc1_lib.config.data import Difficulty

_KNOWN: dict[str, tuple[Difficulty, pl.DataFrame]] = {}


def know_metrics(sha256: str, config: Difficulty, metrics: pl.DataFrame) -> None:
    """Know the metrics of a file of rows, in the place of what was known before.

    Args:
        sha256: of the file's bytes, in hex.
        config: whose bounds decided the buckets.
        metrics: one line a row, in the file's order, as `rc1_lib.difficulty.features.measure` makes them.
    """
    _KNOWN.clear()
    _KNOWN[sha256] = (config, metrics)


def known_metrics(sha256: str, config: Difficulty) -> pl.DataFrame | None:
    """The metrics of a file of rows with these bytes, by these bounds; None where they are not known."""
    by, metrics = _KNOWN.get(sha256, (None, None))
    return metrics if by == config else None
