"""Find held-out texts in very many others: repeated, paraphrased ("retold"), disguised in spelling, or named by id.

- *Repeated*: the share of a held text's word n-grams that a text contains, in any place.
- *Retold*: how much of a held text one window repeats in order, which edits hardly lower. Windows are twice as long as
  the held text. Only texts with some of its distinguishing pairs of adjacent words (`rc1_lib.text.word_pairs`) are
  searched. Two shares are measured: of the held text's words, and of their weight. Both use the longest common
  subsequence, so that a changed, omitted or inserted word costs only itself. If the row's own question has the same
  wording, only the weight indicates a leak; otherwise the row has no reason for this wording, and less weight suffices.
- *Spelled*: all letters of a held text, forwards or backwards, whatever is between them.
- *Named*: all words of an id.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
import regex
from numpy.typing import NDArray
from scipy import sparse

from rc1_lib.config.thresholds import LeakageGate
from rc1_lib.runtime.batches import slices
from rc1_lib.text.ngrams import shares
from rc1_lib.text.normalization import CodedTexts, folded, read
from rc1_lib.text.tokens import UNSPACED
from rc1_lib.text.word_pairs import Pairs, WordPairs

IN_ORDER = 0.7
"""Share of a held text's words that a window has in order if it retells the text: three in ten may be edited."""
MIN_WORDS = 7
"""Fewest such words: a few in order could occur anywhere. A held text of fewer must occur whole."""
MAX_KEPT = 0.3
"""Largest share of a held text's weight in a window, if the row's own question has another wording, which gives it no
reason for these words."""
MAX_KEPT_ALIKE = 0.8
"""The same, if it is worded alike: then it repeats the form, and mostly names and numbers carry weight."""
_ID_WORDS = 3
"""Ids of fewer words are not searched for: they could occur in any text."""
_LEAST_LETTERS = 20
"""Fewest letters and digits of a text that is searched for letter by letter: shorter ones could occur anywhere."""
_ENOUGH_NEIGHBOURS = 10
"""Fewest neighbours with which weights can distinguish a leak from a similar question; with fewer, every word seems
rare."""
_DISTINGUISHING = 1.5
"""Smallest weight, in nats, of a pair that distinguishes its text, or half of the text's highest if that is less."""
_ALIKE = 0.75
"""Smallest share of words in order at which the wording of a row's own question counts as the held text's."""
_FOUND = {"row": pl.UInt32, "held": pl.UInt32}


@dataclass(frozen=True, slots=True)
class Leaks:
    """What texts share with held ones, in frames with the columns `row` and `held` (positions), sorted by these.

    Attributes:
        repeated: pairs that share an n-gram, with `similarity` (share of the held text's n-grams, in (0, 1]).
        retold: pairs with a window that has enough words in order, with the columns `kept` (share of the held text's
            weight, in [0, 1]), `alike` (the row's own question is worded like the held text), `conclusive` (not alike,
            or the held text has enough neighbours for weights to distinguish a leak), `suspect` (keeps more than the
            limits allow) and `leak` (conclusive and suspect). Of several windows the first leak counts, else the one
            that keeps most.
        named: texts with all words of an id.
    """

    repeated: pl.DataFrame
    retold: pl.DataFrame
    spelled: pl.DataFrame
    named: pl.DataFrame

    def rows(self, limits: LeakageGate) -> set[int]:
        """Positions of the texts that repeat, retell, spell or name a held one, by these limits."""
        repeated = self.repeated.filter(pl.col("similarity") > limits.max_similarity)
        return {*repeated["row"], *self.retold.filter("suspect")["row"], *self.spelled["row"], *self.named["row"]}


class LeakSearch:
    """Searches for held-out texts."""

    def __init__(
        self,
        held: pl.Series,
        own: pl.Series,
        limits: LeakageGate,
        *,
        templates: Sequence[str] = (),
        ids: pl.DataFrame | None = None,
        anywhere: bool = False,
    ) -> None:
        """Index the held texts and compute what distinguishes each of them.

        Args:
            own: the question of each row that will be searched, in the rows' order.
            limits: length of n-grams, and the shares above which a window is reported or is a leak.
            templates: texts whose n-grams are ignored.
            ids: columns `held` and `id`, any number of ids per held text.
            anywhere: find everything that would be found if the texts were parts of longer ones, at any offset.
                Windows are then 1.5 times as long, so that they contain a window of the usual length from any start.
        """
        ids = pl.DataFrame(schema={"held": pl.UInt32, "id": pl.String}) if ids is None else ids
        self._limits, self._steps = limits, 3 if anywhere else 2
        self._words = WordPairs(read(pl.concat([held, ids["id"]])))
        self._held, called, wording = (
            self._words.coded(read(texts)) for texts in (held, ids["id"], pl.Series(templates, dtype=pl.String))
        )
        grams, of_templates = (self._words.pairs(texts).ngrams(limits.ngram) for texts in (self._held, wording))
        self._wanted = grams.unique(maintain_order=True).join(of_templates, on="gram", how="anti")
        self._ids = self._whole_ids(ids, called)
        self._spelled = Spelled(held)
        questions = [self._words.coded(read(own[part])) for part in slices(len(own))]
        self._own = CodedTexts.joined(questions)
        self._weights, neighbours = self._words.weights(self._held, questions)
        self._conclusive = neighbours >= _ENOUGH_NEIGHBOURS
        self._informative = self._informative_pairs()

    @property
    def checkable(self) -> int:
        """Number of held texts with an n-gram that is not in a template."""
        return self._wanted["row"].n_unique()

    def over(self, parts: Iterable[pl.Series]) -> Leaks:
        """Search texts, given a few thousand at a time in the order of `own`."""
        first, found = 0, []
        for texts in parts:
            found.append([frame.with_columns(pl.col("row") + first) for frame in self._search(texts, first)])
            first += len(texts)
        return Leaks(*(pl.concat(frames) for frames in zip(*found, strict=True)))

    def _search(self, texts: pl.Series, first: int) -> Iterator[pl.DataFrame]:
        said = read(texts)
        coded = self._words.coded(said)
        pairs = self._words.pairs(coded)
        yield shares(pairs.ngrams(self._limits.ngram), self._wanted)
        yield self._retold(coded, pairs, first)
        yield self._spelled.found_in(texts, said.letters)
        named = [pairs.ngrams(length).join(ids, on="gram").select("row", "held") for length, ids in self._ids]
        yield pl.concat([pl.DataFrame(schema=_FOUND), *named]).unique().sort("row", "held")

    def _whole_ids(self, ids: pl.DataFrame, called: CodedTexts) -> list[tuple[int, pl.DataFrame]]:
        """Return ids by their number of words, each as one n-gram: columns `gram`, `held`."""
        pairs, numbered = self._words.pairs(called), ids.with_row_index("row").with_columns(words=called.lengths)
        return [
            (words, pairs.ngrams(words).join(numbered.filter(words=words), on="row").select("gram", "held"))
            for words in sorted({int(length) for length in called.lengths if length >= _ID_WORDS})
        ]

    def _informative_pairs(self) -> sparse.csr_array:
        """Return each pair's share in the weight of a text's distinguishing pairs, shape (pairs, held texts)."""
        pairs = self._words.pairs(self._held)
        weight = self._weights[pairs.place] + self._weights[pairs.place + 1]
        of_texts = pl.DataFrame({"pair": pairs.number, "held": pairs.text, "weight": weight}).unique(["held", "pair"])
        enough = pl.col("weight") >= pl.min_horizontal(_DISTINGUISHING, pl.col("weight").max().over("held") / 2)
        share = pl.col("weight") / pl.col("weight").sum().over("held")
        of_texts = of_texts.filter(enough).select("pair", "held", share=share)
        pair, held, shares = (column.to_numpy() for column in of_texts)
        return sparse.csr_array((shares, (pair, held)), (self._words.count, len(self._held.ends)))

    def _retold(self, texts: CodedTexts, pairs: Pairs, first: int) -> pl.DataFrame:
        found = []
        held_share = (self._words.occur(pairs, len(texts.ends)) @ self._informative).tocoo()
        enough = held_share.data >= MAX_KEPT
        for row, held in zip(held_share.row[enough].tolist(), held_share.col[enough].tolist(), strict=True):
            wanted, weights = self._held.of(held), self._weights[self._held.span(held)].tolist()
            least = max(IN_ORDER * len(wanted), min(MIN_WORDS, len(wanted)))
            asked = common(wanted, self._own.of(first + row))
            of_windows = []
            for said in _windows(texts.codes[texts.span(row)], wanted, least, self._steps):
                if (in_order := common(wanted, said)) >= least:
                    kept = _common_weight(wanted, weights, said) / (sum(weights) or math.inf)
                    alike = asked >= _ALIKE * in_order
                    conclusive = not alike or bool(self._conclusive[held])
                    suspect = kept > (MAX_KEPT_ALIKE if alike else MAX_KEPT)
                    of_windows.append((conclusive and suspect, kept, alike, conclusive, suspect))
            if of_windows:
                found.append((row, held, *max(of_windows)))
        measured = {"leak": bool, "kept": float, "alike": bool, "conclusive": bool, "suspect": bool}
        return pl.DataFrame(sorted(found), schema={**_FOUND, **measured}, orient="row")


def _windows(text: NDArray[np.unsignedinteger], wanted: Sequence[int], least: float, steps: int) -> Iterator[list[int]]:
    """Yield the windows with at least `least` wanted words; they are `steps` held texts long and start one apart."""
    before = [0, *np.isin(text, wanted).cumsum().tolist()]
    for start in range((1 - steps) * len(wanted), len(text), len(wanted)):
        begin, end = max(0, start), min(len(text), start + steps * len(wanted))
        if before[end] - before[begin] >= least:
            yield text[begin:end].tolist()


class Spelled:
    """Searches for texts letter by letter, forwards or backwards, with spaces removed, added or replaced.

    Matches must start and end at word boundaries: "who built Ara" is not found in "who built Arabel".
    """

    def __init__(self, held: pl.Series) -> None:
        """Index the held texts that are long enough."""
        asked = pl.DataFrame({"letters": read(held).letters}).with_row_index("held")
        asked = asked.filter(pl.col("letters").str.len_chars() >= _LEAST_LETTERS)
        self._wanted = pl.concat([asked, asked.with_columns(pl.col("letters").str.reverse())])

    def found_in(self, texts: pl.Series, letters: pl.Series) -> pl.DataFrame:
        """Return which texts contain a held text, as columns `row`, `held`; `letters` are `read(texts).letters`."""
        suspects = letters.str.contains_any(self._wanted["letters"].implode()).arg_true()
        found = {
            (row, held)
            for row, text, plain in zip(suspects, folded(texts.gather(suspects)), letters.gather(suspects), strict=True)
            for held, wanted in self._wanted.iter_rows()
            if wanted in plain and _spaced(wanted).search(text)
        }
        return pl.DataFrame(sorted(found), schema=_FOUND, orient="row")


@cache
def _spaced(text: str) -> regex.Pattern[str]:
    """Return a pattern for these letters in a folded text, with anything else between them, at word boundaries."""
    word, between = rf"[[\p{{L}}\p{{N}}]--[{UNSPACED}]]", r"[^\p{L}\p{N}]*+"
    return regex.compile(rf"(?<!{word}){between.join(map(regex.escape, text))}(?!{word})", regex.V1)


def common(wanted: Sequence[Hashable], text: Sequence[Hashable]) -> int:
    """Compute the length of the longest common subsequence, bit-parallel (Hyyrö 2004): one step per word of `text`."""
    at: dict[Hashable, int] = {}
    for place, word in enumerate(wanted):
        at[word] = at.get(word, 0) | 1 << place
    every = (1 << len(wanted)) - 1
    missing = every
    for word in text:
        if match := missing & at.get(word, 0):
            missing = ((missing + match) | (missing - match)) & every
    return len(wanted) - missing.bit_count()


def _common_weight(wanted: Sequence[int], weights: Sequence[float], text: Sequence[int]) -> float:
    """Compute the weight of the heaviest common subsequence."""
    best = [0.0] * (len(text) + 1)
    for word, weight in zip(wanted, weights, strict=True):
        before = 0.0
        for place, other in enumerate(text, 1):
            above = best[place]
            best[place] = before + weight if other == word else max(above, best[place - 1])
            before = above
    return best[-1]
