"""How varied a corpus is: distinct-n (the type-token ratio is distinct-1), Zipf slope, divergence from a reference.

All functions are pure and split texts into words with `rc1_lib.text.tokens`. Words become integers once; n-grams are
computed from these with whole-array arithmetic. N-grams never cross from one text into the next.

Sources: distinct-n is Li et al. 2016 (A Diversity-Promoting Objective Function for Neural Conversation Models); Zipf
1949 (Human Behavior and the Principle of Least Effort); KL is Kullback and Leibler 1951 with the additive smoothing
described by Chen and Goodman 1999.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.runtime.batches import in_parts, slices
from rc1_lib.text.normalization import CodedTexts
from rc1_lib.text.tokens import tokens

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
WINDOW_BIGRAMS = 1000
"""N-grams in a window: some forty dialogues, few enough for the smallest task of a small pool to fill several."""
KL_ALPHA = 0.5
"""Added to every n-gram's count: Jeffreys' prior."""
KL_ROWS = 4000
"""Rows in the sample on which the divergence is measured. It depends on the sample size, so all pools that are large
enough use the same."""
_CODE_LIMIT = 2**62
"""Upper limit of the integers that represent n-grams."""


@dataclass(frozen=True, slots=True)
class WindowedDistinct:
    """Distinct-n over windows of equal size, which, unlike the raw value, does not fall as the corpus grows."""

    mean: float
    minimum: float
    windows: int


@dataclass(frozen=True, slots=True)
class Words:
    """The words of many texts as integers, so that several measures tokenize them only once.

    Attributes:
        coded: the code of each word, from 0.
        kinds: one more than the highest code.
    """

    coded: CodedTexts
    kinds: int

    @classmethod
    def of(cls, texts: pl.Series) -> Words:
        """Tokenize and encode `texts`."""
        words = in_parts(texts.cast(pl.String).to_frame("text"), _read)
        codes = words["word"].explode(empty_as_null=False, keep_nulls=False).to_physical().to_numpy()
        ends = words["word"].list.len().fill_null(0).cast(pl.Int64).cum_sum().to_numpy()
        return cls(CodedTexts(codes, ends), int(codes.max(initial=0)) + 1)

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.coded.ends)

    def take(self, places: npt.NDArray[np.integer]) -> Words:
        """Return the words of the texts at `places`, in that order."""
        return Words(self.coded.take(places), self.kinds)

    def grams(self, n: int) -> int:
        """Return the number of n-grams in all texts."""
        return int(np.maximum(self.coded.lengths - (n - 1), 0).sum())


def _read(texts: pl.DataFrame) -> pl.DataFrame:
    return texts.select(word=tokens("text").cast(pl.List(pl.Categorical)))


def distinct_n(texts: pl.Series | Words, n: int) -> float:
    """Return distinct n-grams divided by all n-grams, in (0, 1]; it falls as the corpus grows.

    Raises:
        RowError: when no text has n words.
    """
    words = _long_enough(texts, n)
    different = [pl.Series(grams).unique() for grams in _in_parts(words, n, np.arange(words.texts))]
    return pl.concat(different).n_unique() / words.grams(n)


def windowed_distinct(
    texts: pl.Series | Words, n: int, window_bigrams: int = WINDOW_BIGRAMS, seed: int = 0
) -> WindowedDistinct:
    """Compute distinct-n in consecutive windows over the shuffled rows.

    Args:
        texts: the corpus, one text per row.
        n: length of the n-grams in words.
        window_bigrams: n-grams in a window (bigrams for n = 2). A last window that is not full is dropped, unless it
            is the only one.
        seed: decides the order of the rows.

    Raises:
        RowError: when no text has n words.
    """
    words = _long_enough(texts, n)
    size = min(window_bigrams, words.grams(n))
    found, left = [], np.empty(0, np.int64)
    for grams in _in_parts(words, n, np.random.default_rng(seed).permutation(words.texts)):
        grams = np.concatenate([left, grams])
        windows, left = np.split(grams, [len(grams) // size * size])
        ordered = np.sort(windows.reshape(-1, size), axis=1)
        found.append((1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)) / size)
    shares = np.concatenate(found)
    return WindowedDistinct(float(shares.mean()), float(shares.min()), len(shares))


def zipf_slope(texts: pl.Series, ranks: int = 1000) -> float:
    """Fit the slope of log frequency against log rank, by least squares over the `ranks` most frequent words.

    Natural language lies near -1. A flatter line means a more even use of words; a steeper one relies on few words.

    Raises:
        RowError: when there are fewer than two distinct words.
    """
    words = pl.Series("word", _long_enough(texts, 1).coded.codes)
    counts = words.value_counts(sort=True).head(ranks)["count"].to_numpy()
    if len(counts) < 2:
        raise RowError("Zipf's slope: the texts have only one distinct word; at least two are needed")
    slope, _ = np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)
    return float(slope)


def kl_divergence(texts: pl.Series, reference: pl.Series, n: int = 3, alpha: float = KL_ALPHA) -> float:
    """Compute KL(texts || reference) in nats over word n-grams; 0 for identical counts, never negative.

    `alpha` is added to the count of every n-gram of the union vocabulary, on both sides, and it decides the value. For
    an n-gram that the reference lacks, the ratio grows as 1/alpha: the divergence is unbounded as alpha approaches 0,
    and shrinks to 0 as alpha grows and both sides approach the uniform distribution. The number of rows matters in the
    same way: 3-grams are so sparse that two samples of one source clearly diverge. Compare values only at equal alpha
    and with equally many rows; to compare the wording alone, use the same questions on both sides. The default of one
    half is Jeffreys' prior.

    Raises:
        RowError: when either side has no text of n words.
        ValueError: when alpha is not above 0.
    """
    if alpha <= 0:
        raise ValueError(f"alpha is {alpha}; additive smoothing needs a number above 0")
    ours, theirs, kinds = _paired_counts(texts, reference, n)
    p, q = _shares(ours + alpha, kinds), _shares(theirs + alpha, kinds)
    # Clipped, since rounding may leave -1e-17 for near-equal sides.
    return max(0.0, float(np.sum(kinds * p * np.log(p / q))))


def _shares(counts: Floats, kinds: Floats) -> Floats:
    return counts / np.sum(counts * kinds)


def _paired_counts(texts: pl.Series, reference: pl.Series, n: int) -> tuple[Floats, Floats, Floats]:
    """Return each pair of counts (in `texts`, in `reference`) that occurs, and how many n-grams have that pair.

    A divergence depends only on these pairs. They are few and sorted, so that sums are the same to the last bit
    however the n-grams were grouped.
    """
    both = pl.concat([texts.cast(pl.String).alias("text"), reference.cast(pl.String).alias("text")])
    grams, rows = _grams(Words.of(both), n)
    ours = rows < len(texts)
    for side, name in ((ours, "texts"), (~ours, "reference texts")):
        if not side.any():
            raise RowError(f"{n}-grams: none of the {name} has {n} words; give longer texts or a smaller n")
    # One sort brings equal n-grams together; the lowest bit holds the side.
    keys = np.sort(grams * 2 + ours)
    starts = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
    here = np.add.reduceat(keys & 1, starts)
    there = np.diff(starts, append=len(keys)) - here
    base = int(there.max()) + 1
    pairs, kinds = np.unique(here * base + there, return_counts=True)
    return (pairs // base).astype(np.float64), (pairs % base).astype(np.float64), kinds.astype(np.float64)


def _long_enough(texts: pl.Series | Words, n: int) -> Words:
    if n < 1:
        raise ValueError(f"n is {n}; an n-gram has at least one word")
    words = texts if isinstance(texts, Words) else Words.of(texts)
    if not words.grams(n):
        raise RowError(f"distinct-{n}: none of the {words.texts} texts has {n} words; give longer texts or a smaller n")
    return words


def _in_parts(words: Words, n: int, places: npt.NDArray[np.integer]) -> Iterator[Codes]:
    """Yield the n-grams of the texts at `places`, a few thousand texts at a time."""
    # Codes that `_grams` had to renumber are valid within one part only, so then there must be a single part.
    comparable = words.kinds**n < _CODE_LIMIT
    for part in slices(len(places), at_once=0 if comparable else len(places)):
        yield _grams(words.take(places[part]), n)[0]


def _grams(words: Words, n: int) -> tuple[Codes, Codes]:
    """Return one integer per n-gram occurrence, equal for equal n-grams, in reading order, and the text it is in.

    Each step appends a word as the next digit in base `kinds`. Codes are renumbered from 0 before a product could
    exceed 62 bits, so that a caller has one bit to spare.
    """
    codes, count = words.coded.codes, max(0, len(words.coded.codes) - n + 1)
    grams, size = codes[:count].astype(np.int64), words.kinds
    for distance in range(1, n):
        if size * words.kinds >= _CODE_LIMIT:
            kinds, grams = np.unique(grams, return_inverse=True)
            size = len(kinds)
        grams = grams * words.kinds + codes[distance : distance + count]
        size *= words.kinds
    rows = np.repeat(np.arange(words.texts), words.coded.lengths)
    whole = rows[:count] == rows[n - 1 : n - 1 + count]
    return grams[whole], rows[:count][whole]
