"""The words of many texts as one array of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """The words of texts, one after the other.

    Attributes:
        codes: one integer per word, of all texts together.
        ends: for each text the position after its last word.
    """

    codes: NDArray[np.unsignedinteger]
    ends: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Position of each text's first word."""
        return self.ends - self.lengths

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each text."""
        return np.diff(self.ends, prepend=0)

    @property
    def text_of_words(self) -> NDArray[np.int64]:
        """For each word the index of its text."""
        return np.repeat(np.arange(len(self.ends)), self.lengths)

    @classmethod
    def joined(cls, parts: Sequence[CodedTexts]) -> CodedTexts:
        """Concatenate the texts of all parts."""
        shifts = np.cumsum([0, *(len(part.codes) for part in parts)])
        ends = [part.ends + shift for part, shift in zip(parts, shifts, strict=False)]
        return cls(np.concatenate([part.codes for part in parts]), np.concatenate(ends))

    def take(self, texts: NDArray[np.integer]) -> CodedTexts:
        """Return the texts with these indices, in the given order."""
        lengths = self.lengths[texts]
        ends = np.cumsum(lengths, dtype=np.int64)
        places = np.arange(lengths.sum()) + np.repeat(self.starts[texts] - (ends - lengths), lengths)
        return CodedTexts(self.codes[places], ends)

    def of(self, text: int) -> list[int]:
        """Return the codes of one text."""
        found: list[int] = self.codes[self.span(text)].tolist()
        return found

    def span(self, text: int) -> slice:
        """Return the slice of `codes` that holds one text."""
        return slice(int(self.ends[text - 1]) if text else 0, int(self.ends[text]))
