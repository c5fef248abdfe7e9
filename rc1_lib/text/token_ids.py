"""The words of very many texts as numbers of a small vocabulary: two bytes per word.

A search for given texts only needs to know whether a word is one of theirs. So those have numbers, all other words
share one, and other Chinese characters share another, since the neighbours of a character matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.runtime.batches import slices

_OTHER, _OTHER_HAN = 0, 1
_FIRST = 2
"""The number of the vocabulary's first word."""
_PLACES, _MIXER = np.uint32(2**20), np.uint32(0x9E37)
"""Size of the table of pairs, and the multiplier that spreads them over it."""


def ranges(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """The integers from each of `starts` on, as many as its length, one range after the other."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def different(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct numbers, ascending: `np.unique` builds a hash table first and takes 50 times as long."""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """The words of texts, one after the other.

    Attributes:
        codes: one number per word.
        ends: the place after the last word of each text.
    """

    codes: NDArray[np.unsignedinteger]
    ends: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each text begins."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many words each text has."""
        return np.diff(self.ends, prepend=0)

    @classmethod
    def joined(cls, parts: Sequence[CodedTexts]) -> CodedTexts:
        """The texts of all parts, in order."""
        shifts = np.cumsum([0, *(len(part.codes) for part in parts)])
        ends = [part.ends + shift for part, shift in zip(parts, shifts, strict=False)]
        return cls(np.concatenate([part.codes for part in parts]), np.concatenate(ends))

    def take(self, texts: NDArray[np.integer]) -> CodedTexts:
        """The texts at these positions, in order."""
        starts, lengths = self.starts, self.lengths
        taken = []
        for part in slices(len(texts)):
            counts = lengths[texts[part]]
            taken.append(CodedTexts(self.codes[ranges(starts[texts[part]], counts)], np.cumsum(counts)))
        return CodedTexts.joined(taken)

    def of(self, text: int) -> list[int]:
        """The words of one text."""
        start = self.ends[text - 1] if text else 0
        found: list[int] = self.codes[start : self.ends[text]].tolist()
        return found


class Vocabulary:
    """The words of given texts, numbered."""

    def __init__(self, words: pl.DataFrame) -> None:
        """Number `words`, from `rc1_lib.text.normalization.words`."""
        known = words.select("word", "han").unique("word", maintain_order=True)
        self.size = _FIRST + known.height
        self.han = np.concatenate([[False, True], known["han"].to_numpy()])
        self._type = np.min_scalar_type(self.size)
        numbers = pl.Series("code", np.arange(_FIRST, self.size), dtype=pl.UInt32)
        self._codes = known.select("word", numbers)

    def numbers(self, words: pl.DataFrame) -> NDArray[np.unsignedinteger]:
        """The number of each word (columns `word`, `han`), shape (words,)."""
        other = pl.when("han").then(pl.lit(_OTHER_HAN)).otherwise(pl.lit(_OTHER)).cast(pl.UInt32)
        found = words.join(self._codes, on="word", how="left", maintain_order="left")
        return found.select(pl.col("code").fill_null(other)).to_series().to_numpy().astype(self._type)

    def knows(self, numbers: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Whether each number is that of a word of the vocabulary."""
        known: NDArray[np.bool_] = numbers >= _FIRST
        return known

    def coded(self, words: pl.DataFrame, texts: int = 0) -> CodedTexts:
        """The words (columns `row`, from 0 and ascending, `word`, `han`) of at least `texts` texts."""
        counts = np.bincount(words["row"].to_numpy(), minlength=texts)
        return CodedTexts(self.numbers(words), np.cumsum(counts))


class Pairs:
    """Which two numbers are adjacent in given texts, as a hash table with a few collisions."""

    def __init__(self, codes: NDArray[np.unsignedinteger]) -> None:
        """Add every two adjacent `codes`, including those across the end of a text."""
        self._table = np.zeros(_PLACES, bool)
        self._table[_place(codes)] = True

    def among(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """For each word, whether it and the next one may be such a pair; False means they are not."""
        found = np.zeros(len(codes), bool)
        found[:-1] = self._table[_place(codes)]
        return found


def _place(codes: NDArray[np.unsignedinteger]) -> NDArray[np.uint32]:
    numbers = codes.astype(np.uint32)
    return (numbers[:-1] * _MIXER + numbers[1:]) % _PLACES
