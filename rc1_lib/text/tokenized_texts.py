"""Tokenises very many texts by reading each distinct piece between blanks once.

The same few ten thousand pieces occur in thousands of texts, including punctuation; normalising a piece and extracting
its words costs twenty times as much as looking it up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.text.token_ids import CodedTexts

_BLANK = " "


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """Texts as positions in a list of words.

    Attributes:
        words: String, the words of the texts; a word may be repeated if it is part of different pieces.
        texts: for each text the positions in `words`, in reading order.
    """

    words: pl.Series
    texts: CodedTexts

    def frame(self, **of_words: pl.Series) -> pl.DataFrame:
        """One line per word of the texts: `row` (u32, the text's position) and the columns of `of_words`."""
        codes = self.texts.codes
        row = np.repeat(np.arange(len(self.texts.ends), dtype=np.uint32), self.texts.lengths)
        return pl.DataFrame({"row": row, **{name: of.gather(codes) for name, of in of_words.items()}})


@dataclass(frozen=True, slots=True)
class Pieces:
    """Texts as their pieces between blanks.

    Attributes:
        different: String, each piece once.
        numbers: for each piece of the texts its position in `different`, shape (pieces,).
        counts: how many pieces each text has, shape (texts,), at least 1.
    """

    different: pl.Series
    numbers: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def of(cls, texts: pl.Series, whole: pl.Series) -> Pieces:
        """Split texts (without nulls) into pieces; those marked by `whole` (Boolean) are one piece each."""
        split = pl.col("text").str.replace_all("\n", _BLANK, literal=True).str.split(_BLANK)
        if whole.any():
            split = pl.when(whole).then(pl.concat_list("text")).otherwise(split)
        pieces = pl.DataFrame({"text": texts}).select(piece=split).to_series()
        flat = pieces.explode(empty_as_null=False)
        # Separate categories, which number pieces from 0 in order of appearance.
        numbers = flat.cast(pl.Categorical(pl.Categories.random())).to_physical().to_numpy()
        first = np.empty(int(numbers.max()) + 1 if len(numbers) else 0, np.uint32)
        first[numbers[::-1]] = np.arange(len(numbers), dtype=np.uint32)[::-1]
        return cls(flat.gather(first), numbers, pieces.list.len().to_numpy())

    def read(self, words: pl.Series) -> ReadTexts:
        """The words of the texts; `words` are the word lists of the different pieces."""
        lengths = words.list.len().cast(pl.Int32).to_numpy()
        starts, lengths = (np.cumsum(lengths, dtype=np.int32) - lengths)[self.numbers], lengths[self.numbers]
        behind = np.cumsum(lengths, dtype=np.int32)
        codes = np.repeat(starts - (behind - lengths), lengths)
        codes += np.arange(len(codes), dtype=np.int32)
        ends = np.concatenate([np.zeros(1, np.int64), behind])[np.cumsum(self.counts, dtype=np.int64)]
        return ReadTexts(words.explode(empty_as_null=False), CodedTexts(codes.view(np.uint32), ends))

    def joined(self, of_pieces: pl.Series) -> pl.Series:
        """The texts joined without blanks from a replacement for each of the different pieces."""
        text = np.repeat(np.arange(len(self.counts), dtype=np.uint32), self.counts)
        pieces = pl.DataFrame({"text": pl.Series(text).set_sorted(), "piece": of_pieces.gather(self.numbers)})
        return pieces.group_by("text", maintain_order=True).agg("piece")["piece"].list.join("")
