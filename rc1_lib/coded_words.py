"""The words of very many texts as numbers of a small vocabulary: two bytes a word, whatever else the texts say.

A search for given texts asks of every word only whether it is one of theirs. So those have numbers, all other words
share one, and Chinese characters that are not among them another, since what stands beside a character matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.row_parts import slices

_OTHER, _OTHER_HAN = 0, 1
_FIRST = 2
"""The number of the vocabulary's first word."""


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """The words of texts, one behind the other.

    Attributes:
        codes: a number a word.
        ends: behind the last word of each text.
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
        """The texts of all parts, in their order."""
        shifts = np.cumsum([0, *(len(part.codes) for part in parts)])
        ends = [part.ends + shift for part, shift in zip(parts, shifts, strict=False)]
        return cls(np.concatenate([part.codes for part in parts]), np.concatenate(ends))

    def take(self, texts: NDArray[np.integer]) -> CodedTexts:
        """The texts at these positions, in their order."""
        starts, lengths = self.starts, self.lengths
        taken = []
        for part in slices(len(texts)):
            counts = lengths[texts[part]]
            ends = np.cumsum(counts)
            places = np.repeat(starts[texts[part]] - (ends - counts), counts) + np.arange(counts.sum())
            taken.append(CodedTexts(self.codes[places], ends))
        return CodedTexts.joined(taken)

    def of(self, text: int) -> list[int]:
        """The words of one text."""
        start = self.ends[text - 1] if text else 0
        found: list[int] = self.codes[start : self.ends[text]].tolist()
        return found


class Vocabulary:
    """The words of given texts, numbered."""

    def __init__(self, words: pl.DataFrame) -> None:
        """Number `words`, as `rc1_lib.folded_text.words` gives them."""
        known = words.select("word", "han").unique("word", maintain_order=True)
        self.size = _FIRST + known.height
        self.han = np.concatenate([[False, True], known["han"].to_numpy()])
        self._type = np.min_scalar_type(self.size)
        numbers = pl.Series("code", np.arange(_FIRST, self.size), dtype=pl.UInt32)
        self._codes = known.select("word", numbers)

    def numbered(self, words: pl.DataFrame) -> pl.Series:
        """The number of each word."""
        other = pl.when("han").then(pl.lit(_OTHER_HAN)).otherwise(pl.lit(_OTHER)).cast(pl.UInt32)
        found = words.join(self._codes, on="word", how="left", maintain_order="left")
        return found.select(pl.col("code").fill_null(other)).to_series()

    def coded(self, words: pl.DataFrame, texts: int = 0) -> CodedTexts:
        """The words (columns `row`, from 0 and rising, `word`, `han`) of at least `texts` texts."""
        counts = np.bincount(words["row"].to_numpy(), minlength=texts)
        return CodedTexts(self.numbered(words).to_numpy().astype(self._type), np.cumsum(counts))
