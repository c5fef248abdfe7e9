"""Diversity measures against hand-computed values."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.errors import RowError
from rc1_lib.pool.diversity import (
    Words,
    distinct_n,
    js_divergence,
    kl_divergence,
    windowed_distinct,
    zipf_slope,
)
from rc1_lib.runtime import batches
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


def test_ngrams_never_cross_rows() -> None:
    # "b c" would span two rows
    assert distinct_n(series("a b", "c d", "a b"), 2) == pytest.approx(2 / 3)


def test_empty_and_missing_rows_change_nothing() -> None:
    texts = pl.Series("text", ["a b a b", None, "", "…", "c"], dtype=pl.String)
    assert distinct_n(texts, 2) == pytest.approx(2 / 3)


def test_case_does_not_matter_and_han_characters_are_words() -> None:
    assert distinct_n(series("Go GO go"), 1) == pytest.approx(1 / 3)
    assert distinct_n(series("好好学"), 2) == 1.0


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
    assert found.p10 == pytest.approx(2 / 3 + 0.1 / 3)


def test_corpus_shorter_than_a_window_is_one_window() -> None:
    texts = series("a b a b")
    found = windowed_distinct(texts, 2, window_bigrams=1000)
    assert (found.windows, found.mean, found.minimum) == (1, distinct_n(texts, 2), distinct_n(texts, 2))


@given(corpora, st.integers(1, 10), st.integers(0, 5))
def test_windowed_values_are_ordered_and_reproducible(texts: pl.Series, window: int, seed: int) -> None:
    found = windowed_distinct(texts, 2, window, seed)
    assert 0 < found.minimum <= found.p10 + 1e-12
    assert found.minimum <= found.mean <= 1
    assert found == windowed_distinct(texts, 2, window, seed)


def test_windowed_value_is_stable_in_size_and_the_raw_value_falls() -> None:
    rng = np.random.default_rng(7)
    rows = [" ".join(f"w{word}" for word in rng.integers(0, 200, 30)) for _ in range(3000)]
    small, large = series(*rows[:150]), series(*rows)
    assert distinct_n(large, 2) < 0.75 * distinct_n(small, 2)
    small_windows, large_windows = (windowed_distinct(texts, 2, 1000, 1).mean for texts in (small, large))
    assert large_windows == pytest.approx(small_windows, abs=0.01)


def test_zipf_slope_of_an_exact_power_law_is_its_exponent() -> None:
    # frequencies 3600 / rank^2 over ranks 1..6: 3600 900 400 225 144 100
    words = [f"w{rank}" for rank in range(1, 7) for _ in range(3600 // rank**2)]
    assert zipf_slope(series(" ".join(words))) == pytest.approx(-2.0)


def test_zipf_slope_of_equally_frequent_words_is_flat() -> None:
    assert zipf_slope(series("a b c", "c b a")) == pytest.approx(0.0, abs=1e-12)


def test_zipf_slope_reads_only_the_first_ranks() -> None:
    words = ["a"] * 8 + ["b"] * 4 + ["c"] * 4 + ["d"]
    assert zipf_slope(series(" ".join(words)), ranks=2) == pytest.approx(-1.0)


def test_kl_matches_hand_value() -> None:
    # words: ours a a b, theirs a b b, alpha 1, two kinds: p = 3/5 2/5, q = 2/5 3/5
    expected = 3 / 5 * math.log(3 / 2) + 2 / 5 * math.log(2 / 3)
    assert kl_divergence(series("a a b"), series("a b b"), n=1, alpha=1.0) == pytest.approx(expected)


def test_kl_smooths_ngrams_that_the_reference_lacks() -> None:
    # ours a, theirs b: p = (1+x)/(1+2x), x/(1+2x), and q is p reversed
    alpha = 0.5
    p = (1 + alpha) / (1 + 2 * alpha)
    expected = p * math.log(p / (1 - p)) + (1 - p) * math.log((1 - p) / p)
    assert kl_divergence(series("a"), series("b"), n=1, alpha=alpha) == pytest.approx(expected)


def test_less_smoothing_gives_a_larger_kl_for_disjoint_texts() -> None:
    values = [kl_divergence(series("a b c"), series("d e f"), n=2, alpha=alpha) for alpha in (10, 1, 0.1, 0.01)]
    assert values == sorted(values)


@given(corpora, corpora, st.sampled_from([0.01, 0.5, 1.0]))
def test_divergences_are_never_negative_and_js_is_symmetric_and_bounded(
    ours: pl.Series, theirs: pl.Series, alpha: float
) -> None:
    assert kl_divergence(ours, theirs, alpha=alpha) >= 0
    js = js_divergence(ours, theirs)
    assert 0 <= js <= math.log(2)
    assert js == pytest.approx(js_divergence(theirs, ours))


@given(corpora)
def test_divergences_of_reordered_texts_are_zero(texts: pl.Series) -> None:
    assert kl_divergence(texts, texts.reverse()) == 0
    assert js_divergence(texts, texts.reverse()) == 0


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


def test_js_of_disjoint_texts_is_ln_2() -> None:
    assert js_divergence(series("a b c"), series("d e f")) == pytest.approx(math.log(2))


def test_texts_too_short_to_measure_are_rejected() -> None:
    with pytest.raises(RowError, match=r"^distinct-2: .* 2 texts"):
        distinct_n(series("a", "b"), 2)
    with pytest.raises(RowError, match=r"^3-grams: .*reference"):
        kl_divergence(series("a b c"), series("a b"))
    with pytest.raises(RowError, match=r"^3-grams: .* 3 words"):
        js_divergence(series("a b"), series("a b c"))
    with pytest.raises(RowError, match=r"^Zipf's slope: .*one"):
        zipf_slope(series("a a a"))
    with pytest.raises(RowError, match=r"^distinct-1: .* 0 texts"):
        distinct_n(pl.Series("text", [], dtype=pl.String), 1)


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_smoothing_must_be_positive(alpha: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        kl_divergence(series("a b c"), series("a b c"), alpha=alpha)


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


@given(corpora, st.integers(1, 3), st.randoms(use_true_random=False))
def test_tokens_of_selected_texts_give_the_same_values_as_the_texts(texts: pl.Series, n: int, rng: Random) -> None:
    mixed = pl.concat([texts, pl.Series("text", [None, "", "a b c"])])
    places = [rng.randrange(len(mixed)) for _ in range(len(mixed))] + [len(mixed) - 1]
    texts, words = mixed.gather(places), Words.of(mixed).take(np.array(places))
    expected = distinct_n(texts, n), windowed_distinct(texts, n, 7, seed=3)
    assert (distinct_n(words, n), windowed_distinct(words, n, 7, seed=3)) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "AT_ONCE", 2)
        assert (distinct_n(texts, n), windowed_distinct(texts, n, 7, seed=3)) == expected
