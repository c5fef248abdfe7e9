"""Word n-grams of many texts as one long column of 64-bit hashes, the basis of the overlap measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from rc1_lib.text.tokens import tokens

_MULTIPLIER = 0x9E3779B97F4A7C15
_CHUNK, _AT_ONCE = 2000, 8
"""Texts in a chunk, few enough that its n-grams stay in the processor's cache, and chunks in memory at a time."""


def ngrams(texts: pl.Series, n: int) -> pl.DataFrame:
    """Hash the distinct word n-grams of each text.

    Args:
        texts: any number of strings.
        n: length of the n-grams in tokens. Texts with fewer tokens have none.

    Returns:
        Distinct pairs of `row` (u32, position in `texts`) and `gram` (u64), sorted by row.
    """
    return pl.concat(in_chunks(texts, n, lambda grams: grams.unique(maintain_order=True)))


def in_chunks(texts: pl.Series, n: int, use: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Iterator[pl.DataFrame]:
    """Apply `use` to the n-grams of the texts, chunk by chunk, on all cores.

    Args:
        texts: any number of strings.
        n: length of the n-grams in tokens.
        use: function of a frame with `row` and `gram` as `ngrams` returns, but with repeated n-grams.

    Yields:
        One frame per chunk, in the texts' order; one empty frame if there are no texts.
    """
    starts = range(0, max(1, len(texts)), _CHUNK)
    for begun in range(0, len(starts), _AT_ONCE):
        chunks = starts[begun : begun + _AT_ONCE]
        yield from pl.collect_all([use(_occurrences(texts.slice(start, _CHUNK), n, start)) for start in chunks])


def _occurrences(texts: pl.Series, n: int, first: int) -> pl.LazyFrame:
    """Return every n-gram of every text, in reading order; `first` is the row of the first text."""
    words = (
        pl.LazyFrame({"text": texts})
        .with_row_index("row", offset=first)
        .select("row", token=tokens("text"))
        .explode("token", empty_as_null=False)
        .select("row", word=pl.col("token").hash(seed=7))
    )
    gram = pl.col("word")
    for distance in range(1, n):
        gram = (gram * pl.lit(_MULTIPLIER, pl.UInt64)) ^ pl.col("word").shift(-distance)
    whole = pl.col("row") == pl.col("row").shift(-(n - 1))
    return words.select("row", gram=gram.hash(seed=11), whole=whole).filter("whole").select("row", "gram")


def jaccard_by_row(first: pl.Series, second: pl.Series, n: int) -> pl.Series:
    """Compute the Jaccard similarity of the n-gram sets of `first[i]` and `second[i]`; 0.0 if both are empty."""
    left, right = ngrams(first, n), ngrams(second, n)
    shared = left.join(right, on=["row", "gram"]).group_by("row").len("shared")
    sizes = pl.DataFrame({"row": pl.int_range(len(first), eager=True, dtype=pl.UInt32)})
    table = (
        sizes.join(left.group_by("row").len("left"), on="row", how="left")
        .join(right.group_by("row").len("right"), on="row", how="left")
        .join(shared, on="row", how="left")
        .fill_null(0)
        .sort("row")
    )
    union = pl.col("left").cast(pl.Float64) + pl.col("right") - pl.col("shared")
    return table.select(pl.when(union > 0).then(pl.col("shared") / union).otherwise(0.0).alias("jaccard")).to_series()


def shares(grams: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Compute the share of each held text's n-grams that each text contains, in any place.

    Args:
        grams: n-grams of the texts to search, columns `row` and `gram`.
        wanted: distinct n-grams of the held texts, in the same columns.

    Returns:
        Columns `row`, `held` (positions) and `similarity` (share of the held text's n-grams, in (0, 1]), sorted by the
        first two, only for pairs of texts that share an n-gram.
    """
    held, sizes = wanted.lazy().rename({"row": "held"}), wanted.lazy().group_by(held="row").len("size")
    return (
        grams.lazy()
        .join(held, on="gram")
        .unique()
        .group_by("row", "held")
        .len("shared")
        .join(sizes, on="held")
        .select("row", "held", similarity=pl.col("shared") / pl.col("size"))
        .sort("row", "held")
        .collect()
    )
