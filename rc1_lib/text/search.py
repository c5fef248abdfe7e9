"""Searching very many texts for held-out ones: read a few thousand at a time, and little kept of what they say."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.text.ngrams import grams_at, shares
from rc1_lib.text.normalization import folded, hashed, letters, read_folded, spaced, words
from rc1_lib.text.token_ids import CodedTexts, Pairs, Vocabulary
from rc1_lib.text.tokenized_texts import ReadTexts

_LEAST_LETTERS = 20
"""Letters and digits of a text that is looked for without its spaces: fewer could stand anywhere."""


class Search:
    """What texts share with held ones, as they are read one lot behind the other."""

    def __init__(self, held: pl.Series, wanted: pl.DataFrame, ngram: int) -> None:
        """Search for held texts.

        Args:
            held: the texts, as `rc1_lib.text.normalization.folded` gives them.
            wanted: those of their n-grams that must not be found, as `ngrams_of` gives them.
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
        """Search some texts more, and return their words."""
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
        """What the texts hold of the wanted n-grams, in which no pair of words stands that no held text has."""
        pairs = self._held_pairs.among(coded.codes)
        places = np.flatnonzero(_runs(pairs, self._ngram - 1))
        row, last = (np.searchsorted(coded.ends, places + beyond, side="right") for beyond in (0, self._ngram - 1))
        places, row = places[row == last], row[row == last]
        grams = grams_at(places, said, self._ngram)
        return shares(pl.DataFrame({"row": (row + self._read).astype(np.uint32), "gram": grams}), self._wanted)

    @property
    def texts(self) -> CodedTexts:
        """All words of the texts read, in the vocabulary of the held ones."""
        return CodedTexts.joined(self._texts)

    @property
    def repeated(self) -> pl.DataFrame:
        """Which texts hold which held text's n-grams, and how many: columns as those of `contained`."""
        return pl.concat(self._repeated)

    @property
    def spelled(self) -> pl.DataFrame:
        """Which texts hold a held text's letters, however they are spaced: columns `row`, `held`."""
        return pl.concat(self._spelled)


class Spelled:
    """A search for texts letter by letter, forwards or backwards: spaces left out, put in or drawn as something else.

    Where a word of the text goes on before the first letter or behind the last, nothing is found: "who built Ara" does
    not stand in "who built Arabel".
    """

    def __init__(self, held: pl.Series) -> None:
        """Search for held texts, as `rc1_lib.text.normalization.folded` gives them."""
        asked = pl.DataFrame({"letters": letters(held)}).with_row_index("held")
        asked = asked.filter(pl.col("letters").str.len_chars() >= _LEAST_LETTERS)
        both = pl.concat([asked, asked.with_columns(pl.col("letters").str.reverse())])
        self._held, self._wanted = both["held"].to_list(), both["letters"]

    def suspects(self, said: pl.Series) -> pl.Series:
        """Which texts, whose letters are `said`, may hold one: their positions."""
        return said.str.contains_any(self._wanted.implode()).arg_true()

    def found_in(self, texts: pl.Series) -> pl.DataFrame:
        """Which of `texts` (folded) hold one: columns `row`, `held`."""
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
    """Of each place whether `length` after another are held."""
    count = max(0, len(held) - length + 1)
    runs: NDArray[np.bool_] = np.logical_and.reduce([held[place : place + count] for place in range(length)])
    return runs
