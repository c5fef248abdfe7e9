"""Searching very many texts for held-out ones: read a few thousand at a time, and little kept of what they say."""

from __future__ import annotations

import polars as pl

from rc1_lib.coded_words import CodedTexts, Vocabulary
from rc1_lib.folded_text import folded, words
from rc1_lib.ngrams import contained


class Search:
    """What texts share with held ones, as they are read one lot behind the other."""

    def __init__(self, held: pl.DataFrame, wanted: pl.DataFrame, ngram: int) -> None:
        """Search for held texts.

        Args:
            held: their words, as `rc1_lib.folded_text.words` gives them.
            wanted: those of their n-grams that must not be found, as `ngrams_of` gives them.
            ngram: n-gram length.
        """
        self._vocabulary, self._wanted, self._ngram = Vocabulary(held), wanted, ngram
        self._texts: list[CodedTexts] = []
        self._repeated: list[pl.DataFrame] = []
        self._read = 0

    def read(self, texts: pl.Series) -> pl.DataFrame:
        """Search some texts more, and return their words; rows are counted from the first text of all."""
        said = words(folded(texts))
        self._texts.append(self._vocabulary.coded(said, len(texts)))
        said = said.with_columns(pl.col("row") + self._read)
        self._repeated.append(contained(said, self._ngram, self._wanted))
        self._read += len(texts)
        return said

    @property
    def texts(self) -> CodedTexts:
        """All words of the texts read, in the vocabulary of the held ones."""
        return CodedTexts.joined(self._texts)

    @property
    def repeated(self) -> pl.DataFrame:
        """Which texts hold which held text's n-grams, and how many: columns as those of `contained`."""
        return pl.concat(self._repeated)
