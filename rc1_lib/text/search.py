"""Searches very many texts for held-out ones, a few thousand at a time, with little memory."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.text.ngrams import grams_at, shares
from rc1_lib.text.normalization import folded, hashed, letters, read_folded, spaced, words
from rc1_lib.text.token_ids import CodedTexts, Pairs, Vocabulary
from rc1_lib.text.tokenized_texts import ReadTexts

_LEAST_LETTERS = 20
"""Fewest letters and digits of a text for a search without spaces: shorter ones could occur anywhere."""


class Search:
    """What texts share with held ones; the texts are read in batches."""

    def __init__(self, held: pl.Series, wanted: pl.DataFrame, ngram: int) -> None:
        """Search for held texts.

        Args:
            held: the texts, from `rc1_lib.text.normalization.folded`.
            wanted: their n-grams that must not be found, from `ngrams_of`.
            ngram: n-gram length.
        """
        known = words(held)
        self._vocabulary, self._wanted, self._ngram = Vocabulary(known), wanted, ngram
        self._held_pairs = Pairs(self._vocabulary.coded(known).codes)
        self._letters = Spelled(held)
        self._texts: list[CodedTexts] = []
        self._repeated: list[pl.DataFrame] = []
        self._spelled: list[pl.DataFrame] = []
        self._read = 0

    def read(self, texts: pl.Series) -> ReadTexts:
        """Search further texts, and return their words."""
        said, plain = read_folded(texts)
        spelled_out = hashed(said.words)
        coded = CodedTexts(self._vocabulary.numbers(spelled_out)[said.texts.codes], said.texts.ends)
        self._texts.append(coded)
        self._repeated.append(self._shared(coded, spelled_out["word"].to_numpy()[said.texts.codes]))
        suspects = self._letters.suspects(plain)
        found = self._letters.found_in(folded(texts.gather(suspects)))
        self._spelled.append(found.with_columns(row=suspects.gather(found["row"]).cast(pl.UInt32) + self._read))
        self._read += len(texts)
        return said

    def _shared(self, coded: CodedTexts, said: NDArray[np.uint64]) -> pl.DataFrame:
        """The wanted n-grams in the texts; pairs of words that no held text has rule n-grams out."""
        pairs = self._held_pairs.among(coded.codes)
        places = np.flatnonzero(_runs(pairs, self._ngram - 1))
        row, last = (np.searchsorted(coded.ends, places + beyond, side="right") for beyond in (0, self._ngram - 1))
        places, row = places[row == last], row[row == last]
        grams = grams_at(places, said, self._ngram)
        return shares(pl.DataFrame({"row": (row + self._read).astype(np.uint32), "gram": grams}), self._wanted)

    @property
    def texts(self) -> CodedTexts:
        """All words of the texts so far, in the vocabulary of the held ones."""
        return CodedTexts.joined(self._texts)

    @property
    def repeated(self) -> pl.DataFrame:
        """Which texts contain which held text's n-grams, and how many: columns as in `contained`."""
        return pl.concat(self._repeated)

    @property
    def spelled(self) -> pl.DataFrame:
        """Which texts contain a held text's letters with any spacing: columns `row`, `held`."""
        return pl.concat(self._spelled)


class Spelled:
    """A search for texts letter by letter, forwards or backwards, with spaces removed, added or replaced.

    Matches must start and end at word boundaries: "who built Ara" is not found in "who built Arabel".
    """

    def __init__(self, held: pl.Series) -> None:
        """Search for held texts, from `rc1_lib.text.normalization.folded`."""
        asked = pl.DataFrame({"letters": letters(held)}).with_row_index("held")
        asked = asked.filter(pl.col("letters").str.len_chars() >= _LEAST_LETTERS)
        both = pl.concat([asked, asked.with_columns(pl.col("letters").str.reverse())])
        self._held, self._wanted = both["held"].to_list(), both["letters"]

    def suspects(self, said: pl.Series) -> pl.Series:
        """Positions of the texts, with the letters `said`, that may contain one."""
        return said.str.contains_any(self._wanted.implode()).arg_true()

    def found_in(self, texts: pl.Series) -> pl.DataFrame:
        """Which of `texts` (folded) contain one: columns `row`, `held`."""
        said = letters(texts)
        suspects = self.suspects(said)
        found = {
            (row, self._held[number])
            for row, text, plain in zip(suspects, texts.gather(suspects), said.gather(suspects), strict=True)
            for number, wanted in enumerate(self._wanted)
            if wanted in plain and spaced(wanted).search(text)
        }
        return pl.DataFrame(sorted(found), schema={"row": pl.UInt32, "held": pl.UInt32}, orient="row")


def _runs(held: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """For each place, whether `length` consecutive ones are held."""
    count = max(0, len(held) - length + 1)
    runs: NDArray[np.bool_] = np.logical_and.reduce([held[place : place + count] for place in range(length)])
    return runs
