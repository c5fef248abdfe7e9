"""Compare the diversity measures with a plain Python `Counter`: `python benchmarks/bench_diversity.py [rows]`.

The texts are random words drawn from Zipf's law, 150 per row. Each line shows both times, their ratio and the value,
after a check that both are equal.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.pool import diversity
from rc1_lib.text.tokens import tokenize


def corpus(rows: int, seed: int, words: int = 150, vocabulary: int = 4000) -> pl.Series:
    """Generate random rows whose word frequencies follow Zipf's law."""
    weights = 1 / np.arange(1, vocabulary + 1)
    drawn = np.random.default_rng(seed).choice(vocabulary, size=(rows, words), p=weights / weights.sum())
    return pl.Series("text", [" ".join(f"w{code}" for code in row) for row in drawn])


def plain_counts(texts: pl.Series, n: int) -> Counter[tuple[str, ...]]:
    """Count n-grams with one Python loop per row."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = tokenize(text)
        counts.update(zip(*(words[offset:] for offset in range(n)), strict=False))
    return counts


def plain_distinct(texts: pl.Series, n: int) -> float:
    """Compute distinct-n from a `Counter`."""
    counts = plain_counts(texts, n)
    return len(counts) / counts.total()


def plain_windowed(texts: pl.Series, n: int, size: int = 1000) -> float:
    """Compute the mean windowed distinct-n with a Python loop over the rows in the same shuffled order."""
    order = np.random.default_rng(0).permutation(len(texts))
    grams: list[tuple[str, ...]] = []
    for text in texts.gather(order):
        words = tokenize(text)
        grams += zip(*(words[offset:] for offset in range(n)), strict=False)
    windows = [len(set(grams[start : start + size])) / size for start in range(0, len(grams) - size + 1, size)]
    return sum(windows) / len(windows)


def plain_kl(texts: pl.Series, reference: pl.Series, alpha: float = 0.5) -> float:
    """Compute the KL divergence over 3-grams from two `Counter`s."""
    ours, theirs = plain_counts(texts, 3), plain_counts(reference, 3)
    union = ours.keys() | theirs.keys()
    p_total, q_total = (counts.total() + alpha * len(union) for counts in (ours, theirs))
    pairs = (((ours[gram] + alpha) / p_total, (theirs[gram] + alpha) / q_total) for gram in union)
    return sum(p * math.log(p / q) for p, q in pairs)


def timed(measure: Callable[[], float]) -> tuple[float, float]:
    """Return the value and the seconds it took."""
    start = time.perf_counter()
    value = measure()
    return value, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    texts, reference = corpus(rows, 1), corpus(rows, 2)
    pairs: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        "distinct-1": (lambda: diversity.distinct_n(texts, 1), lambda: plain_distinct(texts, 1)),
        "distinct-2": (lambda: diversity.distinct_n(texts, 2), lambda: plain_distinct(texts, 2)),
        "distinct-2 windowed": (
            lambda: diversity.windowed_distinct(texts, 2).mean,
            lambda: plain_windowed(texts, 2),
        ),
        "KL of 3-grams": (lambda: diversity.kl_divergence(texts, reference), lambda: plain_kl(texts, reference)),
    }
    print(f"{rows} rows of 150 words\n{'measure':<20} {'here s':>8} {'plain s':>8} {'ratio':>6}  value")
    for name, (ours, plain) in pairs.items():
        value, seconds = timed(ours)
        check, plain_seconds = timed(plain)
        assert math.isclose(value, check, rel_tol=1e-9), f"{name}: {value} is not {check}"
        print(f"{name:<20} {seconds:8.2f} {plain_seconds:8.2f} {plain_seconds / seconds:6.1f}  {value:.4f}")
    for name, alone in {
        "JS of 3-grams": lambda: diversity.js_divergence(texts, reference),
        "Zipf slope": lambda: diversity.zipf_slope(texts),
    }.items():
        value, seconds = timed(alone)
        print(f"{name:<20} {seconds:8.2f} {'':>8} {'':>6}  {value:.4f}")


if __name__ == "__main__":
    main()
