"""The vectorized leak search gives the same results as plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.evidence import Evidence
from rc1_lib.rows.spoken import question_texts, spoken
from rc1_lib.text.leak_search import IN_ORDER, MAX_KEPT, MIN_WORDS, LeakSearch, _common_weight, common
from rc1_lib.text.normalization import folded, read, words
from rc1_lib.text.word_pairs import WordPairs
from tests.gates.planted_leaks import SURE, planted
from tests.shares import share

ODD = (
    "aB9 \n\t<>/b!-*_~`'’ʼ＇.,，。好果ΣσΑſßİı＜≮﹤\u00a0\u3000\u00a8\u0301\u00ad\u200b\u0489"
    "&;\\u4e2dn#l%20ᴀᏟ\U000e0020\U000e003c\U000e0062"
)
odd = st.text(st.sampled_from(ODD), max_size=30)
pieces = st.sampled_from(
    ["<b x>", "<!-- ", " -->", "&lt;b ", "&amp;lt;", "\\u003c", "%3cb ", "\\x3c", "\\\\n", "</i >", "b ", "Σ ", "ΑΣ\n"]
)
markup = st.lists(odd | pieces, max_size=6).map("".join)


@pytest.fixture(scope="module")
def damaged(evidence: Evidence) -> pl.DataFrame:
    """Rows, a tenth of them with leaks of every kind in every place."""
    return planted(evidence.rows("pool"), evidence.rows("shadow"), 3)[0]


@pytest.fixture(scope="module")
def shadow_questions(evidence: Evidence) -> pl.Series:
    return question_texts(evidence.rows("shadow"))


def split(texts: pl.Series) -> list[list[str]]:
    """Return the words of each text, read as a whole."""
    of_texts: list[list[str]] = words(texts).to_list()
    return of_texts


def assert_pieces_equal_whole_texts(texts: pl.Series) -> None:
    found = read(texts)
    spelled = found.words.gather(found.texts.codes).to_list()
    of_texts = zip(found.texts.starts, found.texts.ends, strict=True)
    assert [spelled[start:end] for start, end in of_texts] == split(texts)
    assert found.letters.to_list() == folded(texts).str.replace_all(r"[^\p{L}\p{N}]+", "").to_list()


@given(st.lists(st.none() | markup, max_size=5))
def test_texts_read_in_pieces_equal_whole_texts(texts: list[str | None]) -> None:
    assert_pieces_equal_whole_texts(pl.Series(texts, dtype=pl.String))


def test_word_pairs_are_every_pair_of_adjacent_words(damaged: pl.DataFrame, shadow_questions: pl.Series) -> None:
    texts = pl.concat([pl.Series(["", "如果"]), spoken(damaged).head(60), pl.Series(["", "果"])])
    pairs, asked = WordPairs(read(shadow_questions)), [set(pairwise(said)) for said in split(shadow_questions)]
    known = {pair for of_text in asked for pair in of_text}
    found = pairs.pairs(pairs.coded(read(texts)))
    said = [(text, pair) for text, of_text in enumerate(split(texts)) for pair in pairwise(of_text) if pair in known]
    assert found.text.tolist() == [text for text, _ in said]
    number_of = dict(zip([pair for _, pair in said], found.number.tolist(), strict=True))
    assert found.number.tolist() == [number_of[pair] for _, pair in said]
    assert len(set(number_of.values())) == len(number_of)


@pytest.mark.parametrize("ngram", share([2, 5], 5))
def test_the_search_finds_the_same_ngrams_as_plain_python(
    evidence: Evidence, damaged: pl.DataFrame, shadow_questions: pl.Series, ngram: int
) -> None:
    def grams(texts: pl.Series) -> list[set[tuple[str, ...]]]:
        return [set(zip(*(said[place:] for place in range(ngram)), strict=False)) for said in split(texts)]

    limits = evidence.run.config.gates.leakage.model_copy(update={"ngram": ngram})
    templates = [shadow_questions[0]]
    search, texts = LeakSearch(shadow_questions, question_texts(damaged), limits, templates=templates), spoken(damaged)
    found = search.over(texts.slice(first, 70) for first in range(0, len(texts), 70)).repeated
    left_out = grams(pl.Series(templates))[0]
    wanted = [of_text - left_out for of_text in grams(shadow_questions)]
    assert search.checkable == sum(map(bool, wanted))
    expected = [
        (row, number, len(of_text & sought) / len(sought))
        for row, of_text in enumerate(grams(texts))
        for number, sought in enumerate(wanted)
        if of_text & sought
    ]
    assert len(expected) > 50
    assert found.rows() == expected


def test_word_weights_equal_those_of_plain_python(evidence: Evidence, shadow_questions: pl.Series) -> None:
    own = question_texts(evidence.rows("pool").head(150))
    asked, texts = split(shadow_questions), [*split(own), *split(shadow_questions)]
    texts_with = Counter(word for text in texts for word in set(text))
    pairs = WordPairs(read(shadow_questions))
    weights, neighbours = pairs.weights(
        pairs.coded(read(shadow_questions)), [pairs.coded(read(own[:70])), pairs.coded(read(own[70:]))]
    )
    expected = []
    for number, text in enumerate(asked):
        theirs = set(pairwise(text))
        near = [set(other) for other in texts if len(theirs & set(pairwise(other))) >= max(0.3 * len(theirs), 1)]
        assert neighbours[number] == len(near) - 1  # itself
        for word in text:
            by_near = sum(word in other for other in near) - 1
            by_all = 5 * (texts_with[word] - 1 + 0.01) / len(texts)
            expected.append(max(0.0, math.log((len(near) - 1 + 5) / (by_near + by_all))))
    assert (neighbours > 0).any()
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_the_search_finds_most_paraphrases_that_a_comparison_with_every_text_finds_and_no_others(
    evidence: Evidence, shadow_questions: pl.Series
) -> None:
    rows, leaks = planted(evidence.rows("pool").head(40), evidence.rows("shadow"), 1, (*SURE[:3], *SURE[-6:]))
    rows = rows.filter(pl.col("id").is_in([leak.id for leak in leaks]))
    limits = evidence.run.config.gates.leakage
    search = LeakSearch(shadow_questions, question_texts(rows), limits)
    found = search.over([spoken(rows)]).retold
    texts, expected = search._words.coded(read(spoken(rows))), set()
    for row, number in itertools.product(range(len(rows)), range(len(shadow_questions))):
        asked, weights = search._held.of(number), search._weights[search._held.span(number)].tolist()
        for start in range(0, len(text := texts.of(row)), len(asked)):
            window = text[start : start + 2 * len(asked)]
            if common(asked, window) >= max(IN_ORDER * len(asked), min(MIN_WORDS, len(asked))):
                kept = _common_weight(asked, weights, window) / sum(weights)
                expected |= {(row, number)} if kept > MAX_KEPT else set()
    kept = set(found.filter(pl.col("kept") > MAX_KEPT).select("row", "held").iter_rows())
    # A text without the held one's distinguishing pairs of words is not compared, so few may be missing.
    assert kept <= expected
    assert len(kept) >= 0.8 * len(expected) >= 0.8 * len(leaks)
