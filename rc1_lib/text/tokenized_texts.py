"""Very many texts, each different piece of them between blanks read once.

The same few ten thousand pieces come back in thousands of texts, punctuation and all; to bring one into Unicode form
and to take its words out costs twenty times what telling it apart from others does.
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
        words: String, the words that stand in the texts, each once or, as parts of different pieces, more often.
        texts: of each text the positions in `words`, in reading order.
    """

    words: pl.Series
    texts: CodedTexts

    def frame(self, **of_words: pl.Series) -> pl.DataFrame:
        """One line a word of the texts: `row` (u32, the text's position) and what `of_words` say of the words."""
        codes = self.texts.codes
        row = np.repeat(np.arange(len(self.texts.ends), dtype=np.uint32), self.texts.lengths)
        return pl.DataFrame({"row": row, **{name: of.gather(codes) for name, of in of_words.items()}})


@dataclass(frozen=True, slots=True)
class Pieces:
    """Texts as their pieces between blanks.

    Attributes:
        different: String, each piece once.
        numbers: of each piece of the texts the position in `different`, shape (pieces,).
        counts: how many pieces each text has, shape (texts,), none less than 1.
    """

    different: pl.Series
    numbers: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def of(cls, texts: pl.Series, whole: pl.Series) -> Pieces:
        """Take texts, none of them null, apart; those that `whole` (Boolean) names are one piece each."""
        split = pl.col("text").str.replace_all("\n", _BLANK, literal=True).str.split(_BLANK)
        if whole.any():
            split = pl.when(whole).then(pl.concat_list("text")).otherwise(split)
        pieces = pl.DataFrame({"text": texts}).select(piece=split).to_series()
        flat = pieces.explode(empty_as_null=False)
        # Categories of its own, which number pieces from 0 in the order in which they come.
        numbers = flat.cast(pl.Categorical(pl.Categories.random())).to_physical().to_numpy()
        first = np.empty(int(numbers.max()) + 1 if len(numbers) else 0, np.uint32)
        first[numbers[::-1]] = np.arange(len(numbers), dtype=np.uint32)[::-1]
        return cls(flat.gather(first), numbers, pieces.list.len().to_numpy())

    def read(self, words: pl.Series) -> ReadTexts:
        """The words of the texts, where `words` are the lists of words of the different pieces."""
        lengths = words.list.len().cast(pl.Int32).to_numpy()
        starts, lengths = (np.cumsum(lengths, dtype=np.int32) - lengths)[self.numbers], lengths[self.numbers]
        behind = np.cumsum(lengths, dtype=np.int32)
        codes = np.repeat(starts - (behind - lengths), lengths)
        codes += np.arange(len(codes), dtype=np.int32)
        ends = np.concatenate([np.zeros(1, np.int64), behind])[np.cumsum(self.counts, dtype=np.int64)]
        return ReadTexts(words.explode(empty_as_null=False), CodedTexts(codes.view(np.uint32), ends))

    def joined(self, of_pieces: pl.Series) -> pl.Series:
        """The texts, put together without blanks of what stands for each of the different pieces."""
        text = np.repeat(np.arange(len(self.counts), dtype=np.uint32), self.counts)
        pieces = pl.DataFrame({"text": pl.Series(text).set_sorted(), "piece": of_pieces.gather(self.numbers)})
        return pieces.group_by("text", maintain_order=True).agg("piece")["piece"].list.join("")
