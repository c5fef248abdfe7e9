"""How much of a held-out text one place of a row repeats in order: a measure that survives edits.

If questions are made from templates, most words of a question are uninformative: thousands of innocent rows have the
same wording. So words are weighed against template neighbours (`kin`): rows whose own question shares pairs of adjacent
words with the held-out one. A word weighs -ln of its share among the neighbours, smoothed by its share among all rows.
A word in every neighbour weighs nothing; a name in none of them weighs most.

Two shares are measured in each place with some of the weight (a window of twice the text's length): `in_order`, of all
words, and `kept`, of their weight. Both use the longest common subsequence, so that changed, omitted or inserted words
cost no more than themselves. If the row's own question has the same wording anyway, only the weight indicates a leak;
other rows have no reason for this wording, so less weight suffices there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from rc1_lib.config.thresholds import LeakageGate
from rc1_lib.runtime.batches import slices
from rc1_lib.text.candidate_windows import holding, windows
from rc1_lib.text.template_neighbours import Kin
from rc1_lib.text.token_ids import CodedTexts, Vocabulary

_ENOUGH_NEIGHBOURS = 10
"""Fewest neighbours for weights to distinguish a leak from a similar question; with fewer, every word seems rare."""
_SMOOTHING = 5.0
"""The share among all rows counts as much as this many neighbours."""
_ALIKE = 0.75
"""Least share of words in order at which a row's own question counts as worded alike."""


def retold(
    texts: CodedTexts, own: pl.DataFrame, held: pl.DataFrame, limits: LeakageGate, *, wherever: bool = False
) -> pl.DataFrame:
    """The best place of each row for each held text, if some place has enough of its words in order.

    Args:
        texts: all words of each row, in the vocabulary of `held`.
        own: the words of each row's own question, from `rc1_lib.text.normalization.words`.
        held: the words of each held text.
        limits: which places are reported, and which of them are leaks.
        wherever: also find everything that would be found if the texts were embedded in longer ones at any offset:
            places are 1.5 times as long, so that each contains one of the usual length from any start.

    Returns:
        Columns `row`, `held`, `in_order`, `kept`, `alike` (the row's own question is worded like the held text),
        `told` (not alike, or enough other questions are, so that weights distinguish a leak from a neighbour),
        `suspect` (it keeps more than the limits allow) and `leak` (both); for each pair a leak is preferred, and then
        the place that keeps most weight.
    """
    vocabulary = Vocabulary(held)
    weights = word_weights(own, held)
    known = set(weights.filter(pl.col("kin") >= _ENOUGH_NEIGHBOURS)["held"])
    questions, sought = vocabulary.coded(own, len(texts.ends)), vocabulary.coded(held)
    spelled = held.rename({"row": "held"}).join(weights, on=["held", "word"], how="left", maintain_order="left")
    weight_of = spelled["weight"].to_list()
    found = []
    places = windows(texts, held, weights, vocabulary, limits.max_kept, 3 if wherever else 2)
    for (number,), of_held in places.sort("held", maintain_order=True).group_by("held", maintain_order=True):
        wanted = sought.of(number)
        least = max(limits.in_order * len(wanted), min(limits.min_words, len(wanted)))
        of_words = weight_of[sought.starts[number] : sought.ends[number]]
        whole = sum(of_words) or math.inf
        for row, window in holding(texts, of_held, wanted, least):
            in_order = common(wanted, window)
            if in_order >= least:
                kept = _common_weight(wanted, of_words, window) / whole
                alike = common(wanted, questions.of(row)) >= _ALIKE * in_order
                found.append((row, number, in_order / len(wanted), kept, alike, not alike or number in known))
    shares = dict.fromkeys(("in_order", "kept"), pl.Float64)
    numbers = {"row": pl.UInt32, "held": pl.UInt32, **shares, "alike": pl.Boolean, "told": pl.Boolean}
    most = pl.when("alike").then(limits.max_kept_alike).otherwise(limits.max_kept)
    return (
        pl.DataFrame(found, schema=numbers, orient="row")
        .with_columns(suspect=pl.col("kept") > most)
        .with_columns(leak=pl.col("told") & pl.col("suspect"))
        .sort("row", "held", "leak", "kept", descending=[False, False, True, True])
        .unique(["row", "held"], keep="first", maintain_order=True)
    )


def word_weights(own: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """The information in each distinct word of a held text, in nats: `held`, `word`, `weight`, `kin` (neighbours)."""
    kin = Kin(held)
    for part in _parts(own):
        kin.count(part)
    # Held texts count as questions, so that a small pool has neighbours too; each is removed from its own counts.
    for part in _parts(held):
        kin.count(part)
    expected = _SMOOTHING * (pl.col("by_all") - 1 + 0.01) / (own["row"].n_unique() + held["row"].n_unique())
    others = pl.col("by_kin").cast(pl.Float64) - 1
    return (
        kin.counts()
        .cast({"by_all": pl.Float64, "kin": pl.Float64})
        .select(
            "held",
            "word",
            weight=((pl.col("kin") - 1 + _SMOOTHING) / (others + expected)).log().clip(lower_bound=0.0),
            kin=pl.col("kin") - 1,
        )
    )


def _parts(questions: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The words of questions, a few thousand at a time: each neighbours many held texts, and each pair has words."""
    row = questions["row"]
    for part in slices(int(row[-1]) + 1 if questions.height else 0):
        start, end = (row.search_sorted(of, side="left") for of in (part.start, part.stop))
        yield questions[start:end].with_columns(pl.col("row") - part.start)


def common(wanted: Sequence[int], text: Sequence[int]) -> int:
    """Length of the longest common subsequence (Hyyrö 2004: a bit per word of `wanted`, a step per word of `text`)."""
    at: dict[int, int] = {}
    for place, word in enumerate(wanted):
        at[word] = at.get(word, 0) | 1 << place
    every = (1 << len(wanted)) - 1
    missing = every
    for word in text:
        if match := missing & at.get(word, 0):
            missing = ((missing + match) | (missing - match)) & every
    return len(wanted) - missing.bit_count()


def _common_weight(wanted: Sequence[int], weights: Sequence[float], text: Sequence[int]) -> float:
    """Weight of the heaviest common subsequence."""
    best = [0.0] * (len(text) + 1)
    for word, weight in zip(wanted, weights, strict=True):
        before = 0.0
        for place, other in enumerate(text, 1):
            above = best[place]
            best[place] = before + weight if other == word else max(above, best[place - 1])
            before = above
    return best[-1]
