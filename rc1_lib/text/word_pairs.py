"""Find pairs of adjacent words of held texts in other texts, and weigh the held texts' words by them.

Most words of a text occur in no held text, and most of the others not next to the same word. The pairs that remain show
which n-grams two texts share, which questions are worded like a held text, and so how much each of its words reveals.

Questions made from templates share most words: thousands of innocent rows have the same wording. So a held text's words
are weighed by its neighbours, the questions that share enough pairs with it. A word weighs -ln of its share among them,
smoothed by its share among all questions. A word of every neighbour weighs nothing; a name that no neighbour contains
weighs most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rc1_lib.text.normalization import CodedTexts, ReadTexts

Integers = NDArray[np.int64]

_NEIGHBOUR_SHARE = 0.3
"""A question with at least this share of a held text's pairs is its neighbour."""
_SMOOTHING = 5.0
"""A word's share among all questions counts as much as this many neighbours."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Occurrences of word pairs in texts, in reading order.

    Attributes:
        text: index of the text of each occurrence.
        place: position of its first word among the words of all texts.
    """

    text: Integers
    place: Integers
    number: Integers

    def ngrams(self, n: int) -> pl.DataFrame:
        """Return the n-grams (n >= 2) that consist of such pairs: columns `row` (u32) and `gram` (u64)."""
        count = max(0, len(self.place) - (n - 2))
        first = np.flatnonzero(self.place[n - 2 :] - self.place[:count] == n - 2)
        gram = self.number[first].astype(np.uint64)
        for distance in range(1, n - 1):
            gram = gram * _MULTIPLIER ^ self.number[first + distance].astype(np.uint64)
        return pl.DataFrame({"row": self.text[first].astype(np.uint32), "gram": gram})


class WordPairs:
    """The words of held texts, numbered from 1 (0 is any other word), and their pairs, numbered from 0."""

    def __init__(self, held: ReadTexts) -> None:
        """Number the words of the held texts and their pairs."""
        words = held.words.unique(maintain_order=True)
        self.size = len(words) + 1
        self._type = np.min_scalar_type(self.size)
        self._codes = pl.DataFrame({"word": words}).with_row_index("code", 1)
        self._known = np.unique(self._adjacent(self.coded(held)).number)

    def coded(self, texts: ReadTexts) -> CodedTexts:
        """Replace the words of texts by their numbers."""
        codes = pl.DataFrame({"word": texts.words}).join(self._codes, on="word", how="left", maintain_order="left")
        return CodedTexts(codes["code"].fill_null(0).to_numpy().astype(self._type)[texts.texts.codes], texts.texts.ends)

    def pairs(self, texts: CodedTexts) -> Pairs:
        """Return the occurrences of held pairs in texts."""
        all_pairs = self._adjacent(texts)
        number = np.searchsorted(self._known, all_pairs.number)
        held = np.flatnonzero(np.append(self._known, -1)[number] == all_pairs.number)
        return Pairs(all_pairs.text[held], all_pairs.place[held], number[held])

    def _adjacent(self, texts: CodedTexts) -> Pairs:
        """Return all pairs of adjacent words that both have a number, whether or not the pair is in a held text."""
        known, last = texts.codes > 0, texts.ends[texts.ends > 0] - 1
        known_next = np.append(known[1:], False)
        known_next[last] = False
        place = np.flatnonzero(known & known_next)
        number = texts.codes[place].astype(np.int64) * self.size + texts.codes[place + 1]
        return Pairs(np.searchsorted(texts.ends, place, side="right"), place, number)

    @property
    def count(self) -> int:
        """Number of distinct pairs in the held texts."""
        return len(self._known)

    def occur(self, pairs: Pairs, texts: int) -> sparse.csr_array:
        """Return a matrix with a one where a text has a pair, shape (texts, pairs)."""
        return _ones(pairs.text, pairs.number, (texts, self.count))

    def weights(self, held: CodedTexts, questions: Sequence[CodedTexts]) -> tuple[NDArray[np.float64], Integers]:
        """Compute each word's weight in nats, and each held text's number of neighbours.

        Args:
            held: the held texts, shape (texts,).
            questions: the rows' questions, in parts. Held texts count as questions of one another, so that texts have
                neighbours even in a small pool.

        Returns:
            Weights, one per word of the held texts, and numbers of neighbours, shape (texts,).
        """
        texts, words = len(held.ends), self.size
        if not len(held.codes):
            return np.zeros(0), np.zeros(texts, np.int64)
        of_held = self.occur(self.pairs(held), texts)
        least = _NEIGHBOUR_SHARE * of_held.sum(axis=1)
        near_and_said = sparse.csr_array((texts, words), dtype=np.int64)
        neighbours, said_by = np.zeros(texts, np.int64), np.zeros(words, np.int64)
        for part in (*questions, held):
            near = (self.occur(self.pairs(part), len(part.ends)) @ of_held.T).tocsr()
            near.data = (near.data >= least[near.indices]).astype(np.int64)
            said = _ones(part.text_of_words, part.codes, (len(part.ends), words))
            near_and_said += near.T @ said
            neighbours += near.sum(axis=0)
            said_by += said.sum(axis=0)
        asked = sum(np.count_nonzero(part.lengths) for part in (*questions, held))
        text, word = held.text_of_words, held.codes.astype(np.int64)
        others, everyone = (np.maximum(count - 1, 0) for count in (near_and_said[text, word], said_by[word]))
        neighbours = np.maximum(neighbours - 1, 0)
        expected = _SMOOTHING * (everyone + 0.01) / asked
        return np.log(np.maximum((neighbours[text] + _SMOOTHING) / (others + expected), 1.0)), neighbours


def _ones(rows: Integers, columns: NDArray[np.integer], shape: tuple[int, int]) -> sparse.csr_array:
    """Return a matrix with 1 at each of these positions, even at repeated ones."""
    matrix = sparse.csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape)
    matrix.data[:] = 1
    return matrix
