"""Finds places in very many texts that may repeat a held text: places with some of its informative units.

A unit is a word or, in Chinese, whose characters are everywhere, two adjacent characters. Units in too many rows are
uninformative and not searched for. Texts are processed a few thousand at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.text.token_ids import CodedTexts, Vocabulary, different, ranges

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_TELLING = 1.5
"""Least weight, in nats, of a word that is searched for: fewer than a quarter of the neighbours have it."""
_COMMON = 0.05
"""Words with more occurrences per row are not searched for, unless a text has no rarer one."""
_AT_ONCE = 10_000
"""Texts, or places, of a part."""
_ROOM = 2**63
"""Upper limit of the integers that encode text, held text, window and unit."""
_ALONE, _FIRST, _SECOND, _HAN = (np.uint8(1 << bit) for bit in range(4))
"""The role of a number: a unit, the first or the second character of one, a Chinese character."""


def windows(
    texts: CodedTexts, held: pl.DataFrame, weights: pl.DataFrame, vocabulary: Vocabulary, begin: float, steps: int = 2
) -> pl.DataFrame:
    """Places with some of a held text's informative units.

    Args:
        texts: the texts to search.
        held: the words of each held text, columns `row`, `word`, `han`.
        weights: of each held text's words, from `rc1_lib.text.fuzzy_containment.word_weights`.
        vocabulary: of the held texts' words.
        begin: least share of a held text's informative weight in a place.
        steps: length of a place in multiples of the held text's length; places start one length apart.

    Returns:
        Columns `row`, `held`, `start`, `end` (words of the row), sorted by row.
    """
    lengths = held.group_by("row").len("step").select(pl.col("row").alias("held"), pl.col("step").cast(pl.Int64))
    units = _rarer(_informative_units(held, weights, vocabulary), texts, vocabulary).join(lengths, on="held")
    units = units.with_columns(share=pl.col("weight") / pl.col("weight").sum().over("held")).sort("unit", "held")
    sought, first = np.unique(units["unit"].to_numpy(), return_index=True)
    first = np.append(first, units.height)
    found = [pl.DataFrame(schema={"row": pl.UInt32, "held": pl.UInt32, "start": pl.Int64, "end": pl.Int64})]
    for places, seen in _seen(texts, sought, vocabulary):
        of_places = first[seen + 1] - first[seen]
        rows = np.searchsorted(texts.ends, places, side="right")
        rows, places = (np.repeat(one, of_places) for one in (rows, places - texts.starts[rows]))
        found.append(_dense(rows, places, ranges(first[seen], of_places), units, begin, steps))
    return pl.concat(found)


def _dense(
    rows: Integers, places: Integers, spots: Integers, units: pl.DataFrame, begin: float, steps: int = 2
) -> pl.DataFrame:
    """The windows with enough of a held text.

    Args:
        rows: the text of each spot, in ascending order.
        places: how many words of its text precede each spot.
        spots: the line of `units` at each spot.
        units: columns `held`, `step`, `share`.
        begin: how much is enough.
        steps: see `windows`.
    """
    held, step, share = (units[name].to_numpy() for name in ("held", "step", "share"))
    window = places // step[spots]
    windows, texts = int(window.max(initial=0)) + steps, int(held.max(initial=0)) + 1
    first = int(rows[0]) if len(rows) else 0
    if (int(rows[-1]) - first + 1 if len(rows) else 0) * texts * windows * len(held) >= _ROOM:
        half = np.searchsorted(rows, (first + int(rows[-1]) + 1) // 2)
        sides = (slice(None, half), slice(half, None))
        return pl.concat([_dense(rows[side], places[side], spots[side], units, begin, steps) for side in sides])
    # Windows start one step apart, so each word is in `steps` of them. The first has number 1 - steps.
    last = ((rows - first) * texts + held[spots]) * windows + window + steps - 1
    each = np.concatenate([last - back for back in range(steps)])
    both = different(each * len(held) + np.tile(spots, steps))
    where, spots = np.divmod(both, max(1, len(held)))
    opens = np.flatnonzero(np.diff(where, prepend=-1))
    enough = opens[np.add.reduceat(share[spots], opens) >= begin] if len(opens) else opens
    where, step = where[enough], step[spots[enough]]
    start = (where % windows - steps + 1) * step
    return pl.DataFrame(
        {
            "row": (where // windows // texts + first).astype(np.uint32),
            "held": held[spots[enough]],
            "start": np.maximum(start, 0),
            "end": start + steps * step,
        }
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


def _informative_units(held: pl.DataFrame, weights: pl.DataFrame, vocabulary: Vocabulary) -> pl.DataFrame:
    """The informative units of each held text: columns `held`, `unit`, `weight`."""
    coded = vocabulary.coded(held)
    spelled = held.select("word", held="row", unit=pl.Series(_units(coded, vocabulary)))
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
    """The units that are not everywhere, and in any case each held text's rarest ones."""
    sought = np.unique(units["unit"].to_numpy())
    often = _counted(texts, sought, vocabulary)
    most = max(_COMMON * np.count_nonzero(np.diff(texts.ends, prepend=0)), 20)
    counts = pl.DataFrame({"unit": sought, "often": often})
    return units.join(counts, on="unit", how="left").filter(
        (pl.col("often") <= most) | (pl.col("often") == pl.col("often").min().over("held"))
    )


def _seen(texts: CodedTexts, sought: Integers, vocabulary: Vocabulary) -> Iterator[tuple[Integers, Integers]]:
    """Where any of the units `sought` (ascending) begins: places among all words, and their positions in `sought`."""
    number = _alone(sought, vocabulary)
    for start, codes, alone, of_two in _begins_at(texts, sought, vocabulary):
        first, second = np.flatnonzero(alone), np.flatnonzero(of_two)
        found = _paired(codes, second, sought, vocabulary)
        places = np.concatenate([first, second[found >= 0]])
        order = np.argsort(places, kind="stable")
        yield start + places[order], np.concatenate([number[codes[first]], found[found >= 0]])[order]


def _counted(texts: CodedTexts, sought: Integers, vocabulary: Vocabulary) -> Integers:
    """How often each of the units `sought` (ascending) begins."""
    often = np.zeros(len(sought), np.int64)
    words = np.flatnonzero(sought < vocabulary.size)
    for _, codes, alone, of_two in _begins_at(texts, sought, vocabulary):
        often[words] += np.bincount(codes[alone], minlength=vocabulary.size)[sought[words]]
        found = _paired(codes, np.flatnonzero(of_two), sought, vocabulary)
        often += np.bincount(found[found >= 0], minlength=len(sought))
    return often


def _begins_at(
    texts: CodedTexts, sought: Integers, vocabulary: Vocabulary
) -> Iterator[tuple[int, NDArray[np.unsignedinteger], Flags, Flags]]:
    """Candidates for the units `sought`, one part of the texts after another.

    Yields:
        Where the part starts among all words; its words; which of them are such a unit; and which may be the first of
        two characters that form one.
    """
    of_two = sought[sought >= vocabulary.size]
    roles = np.where(vocabulary.han, _HAN, 0).astype(np.uint8)
    roles[sought[sought < vocabulary.size]] |= _ALONE
    roles[of_two // vocabulary.size] |= _FIRST
    roles[of_two % vocabulary.size] |= _SECOND
    for first in range(0, len(texts.ends) if len(sought) else 0, _AT_ONCE):
        start, ends = int(texts.starts[first]), texts.ends[first : first + _AT_ONCE]
        codes = texts.codes[start : ends[-1]]
        role = roles[codes]
        following = np.append(role[1:], np.uint8(0))
        following[ends[ends > start] - 1 - start] = 0  # nothing follows the last word of a text
        in_two = (role & following & _HAN).astype(bool)
        begins = (role & _FIRST).astype(bool) & (following & _SECOND).astype(bool)
        yield start, codes, (role & _ALONE).astype(bool) & ~in_two, begins


def _alone(sought: Integers, vocabulary: Vocabulary) -> Integers:
    """The position in `sought` of each number of the vocabulary that is a unit, shape (size,)."""
    number = np.zeros(vocabulary.size, np.int64)
    words = np.flatnonzero(sought < vocabulary.size)
    number[sought[words]] = words
    return number


def _paired(codes: NDArray[np.unsignedinteger], places: Integers, sought: Integers, vocabulary: Vocabulary) -> Integers:
    """The position in `sought` of the two characters at each place, -1 if they are not among these."""
    spelled = codes[places].astype(np.int64) * vocabulary.size + codes[places + 1]
    at = np.minimum(np.searchsorted(sought, spelled), len(sought) - 1)
    return np.where(sought[at] == spelled, at, -1)


def _units(codes: CodedTexts, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The unit that begins at each word: its number, or for two characters a number above all others."""
    units = codes.codes.astype(np.int64)
    pairs = vocabulary.han[units[:-1]] & vocabulary.han[units[1:]]
    pairs[codes.ends[(codes.ends > 0) & (codes.ends < len(units))] - 1] = False
    places = np.flatnonzero(pairs)
    units[places] = units[places] * vocabulary.size + codes.codes[places + 1]
    return units
