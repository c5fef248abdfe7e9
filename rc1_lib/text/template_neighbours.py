"""Counts which questions are worded like a held text, and which of its words they have, a few thousand at a time."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.text.token_ids import CodedTexts, Vocabulary, different, ranges

_NEIGHBOUR_SHARE = 0.3
"""Share of a held text's adjacent word pairs that makes a question its neighbour (`kin`)."""
Integers = NDArray[np.int64]


class Kin:
    """How many questions have each word of held texts, are worded like each of these, and both."""

    def __init__(self, held: pl.DataFrame) -> None:
        """Count for held texts, given their words from `rc1_lib.text.normalization.words`."""
        self._vocabulary = Vocabulary(held)
        coded = self._vocabulary.coded(held)
        pairs = _different(*self._pairs(coded), self._pair_numbers)
        self._sizes = np.bincount(pairs[0], minlength=len(coded.ends))
        by_pair = np.argsort(pairs[1], kind="stable")
        self._pairs_held, firsts = np.unique(pairs[1][by_pair], return_index=True)
        self._holders, self._first_holder = pairs[0][by_pair], np.append(firsts, len(by_pair))
        self._asked = held.select("word", "han", held="row").unique(["held", "word"], maintain_order=True)
        self._code = self._vocabulary.numbers(self._asked).astype(np.int64)
        self._first_word = np.searchsorted(self._asked["held"].to_numpy(), np.arange(len(coded.ends) + 1))
        self._by_all = np.zeros(self._vocabulary.size, np.int64)
        self._kin, self._by_kin = np.zeros(len(coded.ends), np.int64), np.zeros(len(self._code), np.int64)

    def count(self, questions: pl.DataFrame) -> None:
        """Count further questions: columns `row` (from 0, ascending), `word`, `han`."""
        coded = self._vocabulary.coded(questions)
        size = self._vocabulary.size
        said = different(_text_of(coded) * size + coded.codes)
        self._by_all += np.bincount(said % size, minlength=size)
        row, held = self._neighbours_among(coded)
        self._kin += np.bincount(held, minlength=len(self._kin))
        words = np.diff(self._first_word)[held]
        asked = ranges(self._first_word[held], words)
        sought = np.repeat(row, words) * size + self._code[asked]
        at = np.searchsorted(said, sought)
        self._by_kin += np.bincount(asked[_at(said, at) == sought], minlength=len(self._by_kin))

    def counts(self) -> pl.DataFrame:
        """One line per distinct word of a held text: `held`, `word`, `by_all`, `kin`, `by_kin`.

        These are how many questions have the word, are neighbours of the held text, and both; at least 1.
        """
        held = self._asked["held"].to_numpy()
        counts = {"by_all": self._by_all[self._code], "kin": self._kin[held], "by_kin": self._by_kin}
        return self._asked.select("held", "word", **{name: np.maximum(count, 1) for name, count in counts.items()})

    def _neighbours_among(self, questions: CodedTexts) -> tuple[Integers, Integers]:
        """The questions that share enough pairs of adjacent words with a held text, and which text."""
        row, pair = _different(*self._pairs(questions), self._pair_numbers)
        at = np.searchsorted(self._pairs_held, pair)
        known = _at(self._pairs_held, at) == pair
        row, at = row[known], at[known]
        holders = self._first_holder[at + 1] - self._first_holder[at]
        row, held = np.repeat(row, holders), self._holders[ranges(self._first_holder[at], holders)]
        both, shared = np.unique(row * len(self._sizes) + held, return_counts=True)
        row, held = np.divmod(both, max(1, len(self._sizes)))
        kin = shared >= _NEIGHBOUR_SHARE * self._sizes[held]
        return row[kin], held[kin]

    @property
    def _pair_numbers(self) -> int:
        return self._vocabulary.size**2

    def _pairs(self, texts: CodedTexts) -> tuple[Integers, Integers]:
        """The pairs of adjacent words of the vocabulary: the text of each, and its number."""
        text, codes = _text_of(texts), texts.codes.astype(np.int64)
        known = self._vocabulary.knows(texts.codes)
        pair = np.flatnonzero(known[:-1] & known[1:] & (text[:-1] == text[1:]))
        return text[pair], codes[pair] * self._vocabulary.size + codes[pair + 1]


def _text_of(texts: CodedTexts) -> Integers:
    """The text of each word."""
    return np.repeat(np.arange(len(texts.ends)), texts.lengths)


def _different(text: Integers, number: Integers, numbers: int) -> tuple[Integers, Integers]:
    """Each number of a text once, sorted by text and number; there are `numbers` of them."""
    both = different(text * numbers + number)
    return both // numbers, both % numbers


def _at(values: Integers, places: Integers) -> Integers:
    """The values at these places; -1 beyond the last."""
    return np.append(values, -1)[places]
