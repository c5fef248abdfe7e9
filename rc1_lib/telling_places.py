"""Where in very many texts something of a held text may be retold: places that hold some of its telling units.

A unit is a word, and of Chinese, whose characters are everywhere, two characters in a row. Units that stand in too many
rows say nothing and are not looked for. Texts are gone through a few thousand at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.coded_words import CodedTexts, Vocabulary

_TELLING = 1.5
"""Weight, in nats, from which a word is looked for: fewer than a quarter of the kin say it."""
_COMMON = 0.05
"""Occurrences per row from which a word is not looked for, unless a text has no rarer one."""
_AT_ONCE = 10_000
"""Texts, or places, of a part."""


def windows(
    texts: CodedTexts, held: pl.DataFrame, weights: pl.DataFrame, vocabulary: Vocabulary, begin: float
) -> pl.DataFrame:
    """Places with some of a held text's telling units.

    Args:
        texts: to be searched.
        held: the words of each held text, columns `row`, `word`, `han`.
        weights: of each held text's words, as `rc1_lib.retelling.word_weights` gives them.
        vocabulary: of the held texts' words.
        begin: the share of a held text's telling weight from which a place is named.

    Returns:
        Columns `row`, `held`, `start`, `end` (words of the row), sorted by row.
    """
    lengths = held.group_by("row").len("step").select(pl.col("row").alias("held"), pl.col("step").cast(pl.Int64))
    units = _rarer(_telling(held, weights, vocabulary), texts, vocabulary)
    shares = units.select("held", "unit", share=pl.col("weight") / pl.col("weight").sum().over("held"))
    found = [pl.DataFrame(schema={"row": pl.UInt32, "held": pl.UInt32, "start": pl.Int64, "end": pl.Int64})]
    for places, seen in _seen(texts, units["unit"], vocabulary):
        rows = np.searchsorted(texts.ends, places, side="right")
        spots = pl.DataFrame({"row": rows.astype(np.uint32), "place": places - texts.starts[rows], "unit": seen})
        found.append(_dense(spots.join(shares, on="unit", maintain_order="left").join(lengths, on="held"), begin))
    return pl.concat(found)


def _dense(spots: pl.DataFrame, begin: float) -> pl.DataFrame:
    """The windows over `spots` that hold enough of a held text."""
    spots = spots.with_columns(window=pl.col("place") // pl.col("step"))
    # Windows are two steps long and begin one step apart: each word stands in two of them.
    both = pl.concat([spots, spots.with_columns(pl.col("window") - 1)])
    return (
        both.unique(["row", "held", "window", "unit"])
        .group_by("row", "held", "window", "step")
        .agg(pl.col("share").sum())
        .filter(pl.col("share") >= begin)
        .sort("row", "held", "window")
        .select(
            "row",
            "held",
            start=(pl.col("window") * pl.col("step")).clip(lower_bound=0),
            end=(pl.col("window") + 2) * pl.col("step"),
        )
    )


def holding(
    texts: CodedTexts, places: pl.DataFrame, wanted: Sequence[int], least: float
) -> Iterator[tuple[int, list[int]]]:
    """Row and words of the places (`row`, `start`, `end`) with as many `wanted` words as a subsequence needs."""
    sought = np.asarray(wanted, dtype=texts.codes.dtype)
    for part in places.iter_slices(_AT_ONCE):
        row = part["row"].to_numpy()
        start = texts.starts[row] + part["start"].to_numpy()
        end = np.minimum(texts.starts[row] + part["end"].to_numpy(), texts.ends[row])
        words = start[:, None] + np.arange(int((end - start).max(initial=0)))
        match = np.isin(texts.codes[np.minimum(words, len(texts.codes) - 1)], sought) & (words < end[:, None])
        for hit in np.flatnonzero(match.sum(axis=1) >= least):
            yield int(row[hit]), texts.codes[start[hit] : end[hit]].tolist()


def _telling(held: pl.DataFrame, weights: pl.DataFrame, vocabulary: Vocabulary) -> pl.DataFrame:
    """The units of each held text that say something: columns `held`, `unit`, `weight`."""
    coded = vocabulary.coded(held)
    units = _units(coded, np.arange(len(coded.codes)), vocabulary)
    spelled = held.select("word", held="row", unit=pl.Series(units))
    of_two = pl.col("unit") >= vocabulary.size
    weighed = (
        spelled.with_columns(next=pl.when(of_two).then(pl.col("word").shift(-1)))
        .join(weights, on=["held", "word"], how="left")
        .join(weights.select("held", next="word", weight_next="weight"), on=["held", "next"], how="left")
        .with_columns(weight=pl.col("weight") + pl.col("weight_next").fill_null(0.0))
        .select("held", "unit", "weight")
        .unique()
    )
    return weighed.filter((pl.col("weight") >= _TELLING) | (pl.col("weight") == pl.col("weight").max().over("held")))


def _rarer(units: pl.DataFrame, texts: CodedTexts, vocabulary: Vocabulary) -> pl.DataFrame:
    """The units that are not everywhere, and of each held text its rarest whatever they are."""
    often = Counter[int]()
    for _, seen in _seen(texts, units["unit"], vocabulary):
        often.update(dict(zip(*(found.tolist() for found in np.unique(seen, return_counts=True)), strict=True)))
    most = max(_COMMON * np.count_nonzero(np.diff(texts.ends, prepend=0)), 20)
    counts = pl.DataFrame({"unit": often.keys(), "often": often.values()}, schema={"unit": pl.Int64, "often": pl.Int64})
    return (
        units.join(counts, on="unit", how="left")
        .fill_null(0)
        .filter((pl.col("often") <= most) | (pl.col("often") == pl.col("often").min().over("held")))
    )


def _seen(
    texts: CodedTexts, units: pl.Series, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Where any of `units` begins, as a place among all words, and which: part of the texts after part."""
    sought = np.unique(units.to_numpy())
    begins = np.zeros(vocabulary.size, bool)
    begins[np.where(sought < vocabulary.size, sought, sought // vocabulary.size)] = True
    # Most units are words, which a table tells faster than a search does.
    wanted = np.zeros(vocabulary.size + 1, bool)
    wanted[sought[sought < vocabulary.size]] = True
    for first in range(0, len(texts.ends) if len(sought) else 0, _AT_ONCE):
        start, end = texts.starts[first], texts.ends[min(first + _AT_ONCE, len(texts.ends)) - 1]
        places = start + np.flatnonzero(begins[texts.codes[start:end]])
        found = _units(texts, places, vocabulary)
        hit = wanted[np.minimum(found, vocabulary.size)]
        pairs = np.flatnonzero(found >= vocabulary.size)
        at = np.minimum(np.searchsorted(sought, found[pairs]), len(sought) - 1)
        hit[pairs] = sought[at] == found[pairs]
        yield places[hit], found[hit]


def _units(texts: CodedTexts, places: NDArray[np.int64], vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The unit that begins at each place: a word's number, or one above all numbers that says which two characters."""
    first = texts.codes[places].astype(np.int64)
    following = texts.codes[np.minimum(places + 1, len(texts.codes) - 1)].astype(np.int64)
    pairs = np.flatnonzero(vocabulary.han[first] & vocabulary.han[following])
    ends = texts.ends[np.searchsorted(texts.ends, places[pairs], side="right")]
    pairs = pairs[places[pairs] + 1 < ends]
    units = first.copy()
    units[pairs] = first[pairs] * vocabulary.size + following[pairs]
    return units
