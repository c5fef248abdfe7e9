"""Diversity measures against hand-computed values."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.pool.diversity import (
    distinct_n,
    kl_divergence,
    windowed_distinct,
    zipf_slope,
)
from rc1_lib.text.tokens import tokenize

corpora = st.lists(
    st.lists(st.sampled_from("abcdef"), min_size=3, max_size=12).map(" ".join), min_size=1, max_size=20
).map(lambda texts: pl.Series("text", texts))


def series(*texts: str) -> pl.Series:
    return pl.Series("text", texts)


def test_distinct_n_divides_distinct_ngrams_by_all_ngrams() -> None:
    # bigrams: a b, b a, a b -> 2 kinds of 3
    assert distinct_n(series("a b a b"), 2) == pytest.approx(2 / 3)
    assert distinct_n(series("a b a b"), 1) == 0.5


@given(corpora, st.integers(1, 3))
def test_distinct_agrees_with_a_plain_count(texts: pl.Series, n: int) -> None:
    grams = [tuple(words[i : i + n]) for text in texts for words in [tokenize(text)] for i in range(len(words) - n + 1)]
    value = distinct_n(texts, n)
    assert value == len(set(grams)) / len(grams)
    assert 0 < value <= 1


def test_long_ngrams_over_many_words_stay_exact() -> None:
    # 3,000 words, n = 8: 3000 ** 8 does not fit 64 bits
    words = [f"w{number}" for number in range(3000)]
    assert distinct_n(series(" ".join(words), " ".join(words)), 8) == 0.5


def test_windows_have_a_fixed_size_and_the_remainder_is_dropped() -> None:
    # one row of 7 bigrams in windows of 3: [ab ba ab] [bc cd de] and a remainder of one
    found = windowed_distinct(series("a b a b c d e f"), 2, window_bigrams=3)
    assert found.windows == 2
    assert found.mean == pytest.approx((2 / 3 + 1) / 2)
    assert found.minimum == pytest.approx(2 / 3)


def test_zipf_slope_of_an_exact_power_law_is_its_exponent() -> None:
    # frequencies 3600 / rank^2 over ranks 1..6: 3600 900 400 225 144 100
    words = [f"w{rank}" for rank in range(1, 7) for _ in range(3600 // rank**2)]
    assert zipf_slope(series(" ".join(words))) == pytest.approx(-2.0)


def test_kl_matches_hand_value() -> None:
    # words: ours a a b, theirs a b b, alpha 1, two kinds: p = 3/5 2/5, q = 2/5 3/5
    expected = 3 / 5 * math.log(3 / 2) + 2 / 5 * math.log(2 / 3)
    assert kl_divergence(series("a a b"), series("a b b"), n=1, alpha=1.0) == pytest.approx(expected)


@given(corpora, corpora, st.sampled_from([0.01, 0.5, 1.0]))
def test_kl_is_never_negative(ours: pl.Series, theirs: pl.Series, alpha: float) -> None:
    assert kl_divergence(ours, theirs, alpha=alpha) >= 0


@given(corpora, corpora)
def test_kl_agrees_with_a_plain_count(ours: pl.Series, theirs: pl.Series) -> None:
    p, q = (
        Counter(tuple(text.split()[i : i + 3]) for text in side for i in range(len(text.split()) - 2))
        for side in (ours, theirs)
    )
    union = set(p) | set(q)
    ours_total, theirs_total = (sum(side.values()) + 0.5 * len(union) for side in (p, q))
    expected = sum(
        (p[gram] + 0.5) / ours_total * math.log((p[gram] + 0.5) / ours_total * theirs_total / (q[gram] + 0.5))
        for gram in union
    )
    assert kl_divergence(ours, theirs, alpha=0.5) == pytest.approx(expected, abs=1e-9)


def test_real_questions_have_the_documented_raw_and_windowed_values() -> None:
    file = Path(__file__).parents[3] / "shared" / "data" / "gsm8k" / "train.jsonl"
    if not file.exists():
        pytest.skip(f"the real GSM8K rows are missing: no {file}")
    questions = pl.read_ndjson(file)["question"]
    assert distinct_n(questions.head(100), 2) == pytest.approx(0.75, abs=0.03)
    assert distinct_n(questions, 2) == pytest.approx(0.36, abs=0.03)
    found = windowed_distinct(questions, 2, 1000, 1)
    assert found.mean == pytest.approx(0.85, abs=0.02)
    assert found.minimum == pytest.approx(0.78, abs=0.03)
