"""How varied a corpus is: distinct-n, type-token ratio, Zipf slope, and how far it stands from a reference.

All functions are pure and read texts through `rc1_lib.text`. Words are coded as integers once and n-grams are
whole-array arithmetic on the codes. N-grams never cross from one text into the next.

Sources: distinct-n is Li et al. 2016 (A Diversity-Promoting Objective Function for Neural Conversation Models); Zipf
1949 (Human Behavior and the Principle of Least Effort); KL is Kullback and Leibler 1951 with the additive smoothing
described by Chen and Goodman 1999; JS is Lin 1991 (Divergence Measures Based on the Shannon Entropy).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.text import tokens

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WindowedDistinct:
    """Distinct-n over windows of equal size: unlike the raw value, it does not fall as the corpus grows."""

    mean: float
    p10: float
    minimum: float
    windows: int


@dataclass(frozen=True, slots=True)
class Words:
    """All words of many texts, read once for however many figures.

    Attributes:
        codes: a number from 0 up for each word, text after text, in reading order.
        rows: the text that each of them stands in, rising.
        texts: how many texts there are.
    """

    codes: Codes
    rows: Codes
    texts: int

    @classmethod
    def of(cls, texts: pl.Series) -> Words:
        """The words of `texts`."""
        return cls(*_coded(texts), len(texts))

    def take(self, places: Codes) -> Words:
        """The words of the texts at `places`, in that order."""
        starts = np.searchsorted(self.rows, np.arange(self.texts + 1))
        counts = np.diff(starts)[places]
        shift = np.repeat(starts[places] - (np.cumsum(counts) - counts), counts)
        return Words(self.codes[shift + np.arange(len(shift))], np.repeat(np.arange(len(places)), counts), len(places))


def distinct_n(texts: pl.Series | Words, n: int) -> float:
    """Different n-grams divided by all n-grams, in (0, 1], over the whole corpus; it falls as the corpus grows.

    Raises:
        RowError: when no text has n words.
    """
    grams = _grams(texts, n)
    return pl.Series(grams).n_unique() / len(grams)


def windowed_distinct(texts: pl.Series | Words, n: int, window_bigrams: int = 1000, seed: int = 0) -> WindowedDistinct:
    """Distinct-n of consecutive windows over the shuffled rows.

    Args:
        texts: the corpus, a text a row.
        n: length of the n-grams in words.
        window_bigrams: n-grams in a window (bigrams for n = 2). A last window that is not full is left out, unless it
            is the only one.
        seed: decides the order of the rows.

    Raises:
        RowError: when no text has n words.
    """
    words = _words(texts)
    grams = _grams(words.take(np.random.default_rng(seed).permutation(words.texts)), n)
    size = min(window_bigrams, len(grams))
    windows = len(grams) // size
    ordered = np.sort(grams[: windows * size].reshape(windows, size), axis=1)
    shares = (1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)) / size
    return WindowedDistinct(float(shares.mean()), float(np.quantile(shares, 0.1)), float(shares.min()), windows)


def type_token_ratio(texts: pl.Series) -> float:
    """Different words divided by all words, in (0, 1]: the same figure as distinct-1, under its older name.

    Raises:
        RowError: when there is no word at all.
    """
    return distinct_n(texts, 1)


def zipf_slope(texts: pl.Series, ranks: int = 1000) -> float:
    """Slope of log frequency against log rank, by least squares over the `ranks` most frequent words.

    Natural language lies near -1; a flatter line is a more even use of words, a steeper one leans on few.

    Raises:
        RowError: when there are fewer than two different words.
    """
    counts = pl.Series("word", _grams(texts, 1)).value_counts(sort=True).head(ranks)["count"].to_numpy()
    if len(counts) < 2:
        raise RowError("Zipf's slope: the texts hold one single word; it takes at least two different words")
    slope, _ = np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)
    return float(slope)


def kl_divergence(texts: pl.Series, reference: pl.Series, n: int = 3, alpha: float = 0.5) -> float:
    """KL(texts || reference) in nats over word n-grams; 0 for identical counts, never negative.

    Every n-gram of the union vocabulary gets `alpha` added to its count on both sides. That decides the figure: for an
    n-gram which the reference lacks, the ratio grows as 1/alpha, so that the divergence grows without bound as alpha
    falls towards 0 and shrinks to 0 as alpha grows, both sides nearing the uniform distribution. Sample size acts the
    same way: 3-grams are so sparse that two samples of one source stand well apart. Compare figures only at equal
    alpha, with equally many rows on each side, and, to see the wording alone, with the same questions on both sides.
    The default of one half is Jeffreys' prior.

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


def js_divergence(texts: pl.Series, reference: pl.Series, n: int = 3) -> float:
    """Jensen-Shannon divergence in nats over word n-grams: 0 for identical, at most ln 2, symmetric; no smoothing.

    Raises:
        RowError: when either side has no text of n words.
    """
    ours, theirs, kinds = _paired_counts(texts, reference, n)
    p, q = _shares(ours, kinds), _shares(theirs, kinds)
    middle = (p + q) / 2
    # 0 log 0 is 0: where a side is empty its share is read as the middle, whose logarithm is then of 1.
    halves = (np.sum(kinds * side * np.log(np.where(side > 0, side, middle) / middle)) for side in (p, q))
    return min(max(0.0, float(sum(halves)) / 2), float(np.log(2)))


def _shares(counts: Floats, kinds: Floats) -> Floats:
    return counts / np.sum(counts * kinds)


def _paired_counts(texts: pl.Series, reference: pl.Series, n: int) -> tuple[Floats, Floats, Floats]:
    """For each pair of counts that occurs (here, there): both counts, and how many n-grams of the union have that pair.

    A divergence depends on the pairs alone. There are few, and in sorted order, so that sums come out the same to the
    last bit however the n-grams were grouped.
    """
    both = pl.concat([texts.cast(pl.String).alias("text"), reference.cast(pl.String).alias("text")])
    codes, rows = _coded(both)
    grams, places = _join(codes, rows, n)
    ours = rows[places] < len(texts)
    for side, name in ((ours, "texts"), (~ours, "reference texts")):
        if not side.any():
            raise RowError(f"{n}-grams: none of the {name} has {n} words; give longer texts or a smaller n")
    # One sort brings equal n-grams together; the side rides along in the lowest bit.
    keys = np.sort(grams * 2 + ours)
    starts = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
    here = np.add.reduceat(keys & 1, starts)
    there = np.diff(starts, append=len(keys)) - here
    base = int(there.max()) + 1
    pairs, kinds = np.unique(here * base + there, return_counts=True)
    return (pairs // base).astype(np.float64), (pairs % base).astype(np.float64), kinds.astype(np.float64)


def _words(texts: pl.Series | Words) -> Words:
    return texts if isinstance(texts, Words) else Words.of(texts)


def _grams(texts: pl.Series | Words, n: int) -> Codes:
    """One integer per n-gram occurrence, equal for equal n-grams, in reading order."""
    words = _words(texts)
    grams, _ = _join(words.codes, words.rows, n)
    if not len(grams):
        raise RowError(f"distinct-{n}: none of the {words.texts} texts has {n} words; give longer texts or a smaller n")
    return grams


def _coded(texts: pl.Series) -> tuple[Codes, Codes]:
    """All words of all texts in reading order: a number from 0 up for each word, and its row."""
    words = (
        pl.DataFrame({"text": texts.cast(pl.String)})
        .with_row_index("row")
        .select("row", word=tokens("text"))
        .explode("word")
        .drop_nulls("word")
        .select(pl.col("row").cast(pl.Int64), code=pl.col("word").cast(pl.Categorical).to_physical().cast(pl.Int64))
    )
    return words["code"].to_numpy(), words["row"].to_numpy()


def _join(codes: Codes, rows: Codes, n: int) -> tuple[Codes, Codes]:
    """N-grams as single integers, and the position of each one's first word.

    Each step appends a word as the next digit in base `words`; codes are made dense again before a product could
    leave 62 bits, so that a caller has one to spare.
    """
    if n < 1:
        raise ValueError(f"n is {n}; an n-gram has at least one word")
    words = int(codes.max(initial=0)) + 1
    count = max(0, len(codes) - n + 1)
    grams, size = codes[:count], words
    for distance in range(1, n):
        if size * words >= 2**62:
            kinds, grams = np.unique(grams, return_inverse=True)
            size = len(kinds)
        grams = grams * words + codes[distance : distance + count]
        size *= words
    places = np.flatnonzero(rows[:count] == rows[n - 1 : n - 1 + count])
    return grams[places], places
