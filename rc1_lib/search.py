"""Searching very many texts for held-out ones: read a few thousand at a time, and little kept of what they say."""

from __future__ import annotations

import polars as pl

from rc1_lib.coded_words import CodedTexts, Vocabulary
from rc1_lib.folded_text import folded, letters, spaced, words
from rc1_lib.ngrams import contained

_LEAST_LETTERS = 20
"""Letters and digits of a text that is looked for without its spaces: fewer could stand anywhere."""


class Search:
    """What texts share with held ones, as they are read one lot behind the other."""

    def __init__(self, held: pl.Series, wanted: pl.DataFrame, ngram: int) -> None:
        """Search for held texts.

        Args:
            held: the texts, as `rc1_lib.folded_text.folded` gives them.
            wanted: those of their n-grams that must not be found, as `ngrams_of` gives them.
            ngram: n-gram length.
        """
        self._vocabulary, self._wanted, self._ngram = Vocabulary(words(held)), wanted, ngram
        self._letters = Spelled(held)
        self._texts: list[CodedTexts] = []
        self._repeated: list[pl.DataFrame] = []
        self._spelled: list[pl.DataFrame] = []
        self._read = 0

    def read(self, texts: pl.Series) -> pl.DataFrame:
        """Search some texts more, and return their words; rows are counted from the first text of all."""
        text = folded(texts)
        said = words(text)
        self._texts.append(self._vocabulary.coded(said, len(texts)))
        said = said.with_columns(pl.col("row") + self._read)
        self._repeated.append(contained(said, self._ngram, self._wanted))
        self._spelled.append(self._letters.found_in(text).with_columns(pl.col("row") + self._read))
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
        """Search for held texts, as `rc1_lib.folded_text.folded` gives them."""
        asked = pl.DataFrame({"letters": letters(held)}).with_row_index("held")
        asked = asked.filter(pl.col("letters").str.len_chars() >= _LEAST_LETTERS)
        both = pl.concat([asked, asked.with_columns(pl.col("letters").str.reverse())])
        self._held, self._wanted = both["held"].to_list(), both["letters"]

    def found_in(self, texts: pl.Series) -> pl.DataFrame:
        """Which of `texts` (folded) hold one: columns `row`, `held`."""
        said = letters(texts)
        suspects = said.str.contains_any(self._wanted.implode()).arg_true()
        found = {
            (row, self._held[number])
            for row, text, plain in zip(suspects, texts.gather(suspects), said.gather(suspects), strict=True)
            for number, wanted in enumerate(self._wanted)
            if wanted in plain and spaced(wanted).search(text)
        }
        return pl.DataFrame(sorted(found), schema={"row": pl.UInt32, "held": pl.UInt32}, orient="row")
