"""How much of a held-out text is retold in one place of a row, in its order: a measure that survives edits.

Where questions are made from patterns, most words of a question say nothing: thousands of innocent rows are worded like
it. So a question's words are weighed by what pattern-sharing alone gives. Its *kin* are the rows whose own question
shares pairs of neighbouring words with it; a word weighs -ln of its share of the kin, smoothed by its share of all.
What every relative says weighs nothing, a name that none says weighs most.

Two shares are taken in each place that holds some of the weight (a window of twice the text's length): `in_order`, of
all its words, and `kept`, of their weight, both by the longest common subsequence, so that words changed, left out or
put in cost no more than themselves. In a row whose own question is worded like the held one anyway, only the weight
speaks of a leak; no other row has a reason to be worded like it, so that less weight is needed there.
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

_ENOUGH_KIN = 10
"""Relatives from which weights tell a leak from a neighbour that asks alike; with fewer every word seems to tell."""
_SMOOTHING = 5.0
"""Relatives that the share of all rows counts for."""
_ALIKE = 0.75
"""Share of a place's words in order that a row's own question has to reach for the row to ask alike."""


def retold(
    texts: CodedTexts, own: pl.DataFrame, held: pl.DataFrame, limits: LeakageGate, *, wherever: bool = False
) -> pl.DataFrame:
    """The best place of each row for each held text, where some place holds enough of its words in order.

    Args:
        texts: all words of each row, in the vocabulary of `held`.
        own: the words of each row's own question, as `rc1_lib.text.normalization.words` gives them.
        held: the words of each held text.
        limits: which places are reported, and which of them are leaks.
        wherever: find all that would be found were the texts to stand in others, behind however many words: places are
            half as long again, so that each holds one of the usual length from wherever it begins.

    Returns:
        Columns `row`, `held`, `in_order`, `kept`, `alike` (the row's own question is worded like the held text),
        `told` (not so, or enough others are, so that weights tell a leak from a neighbour), `suspect` (it keeps more
        than the limits allow) and `leak` (both); of several places of a pair a leak, and of these the one that keeps
        most weight.
    """
    vocabulary = Vocabulary(held)
    weights = word_weights(own, held)
    known = set(weights.filter(pl.col("kin") >= _ENOUGH_KIN)["held"])
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
    """What each distinct word of each held text says, in nats: columns `held`, `word`, `weight`, `kin` (relatives)."""
    kin = Kin(held)
    for part in _parts(own):
        kin.count(part)
    # Held texts stand among the questions, so that a small pool has kin too; each is then taken off its own counts.
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
    """The words of a few thousand questions after another: each is kin to many held texts, and each pair has words."""
    row = questions["row"]
    for part in slices(int(row[-1]) + 1 if questions.height else 0):
        start, end = (row.search_sorted(of, side="left") for of in (part.start, part.stop))
        yield questions[start:end].with_columns(pl.col("row") - part.start)


def common(wanted: Sequence[int], text: Sequence[int]) -> int:
    """Length of the longest common subsequence (Hyyrö 2004: a bit a word of `wanted`, one step a word of `text`)."""
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
