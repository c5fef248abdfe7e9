"""What the search for leaks does by columns and numbers, beside the same in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from rc1_lib.evidence import Evidence
from rc1_lib.gates.leakage import question_texts
from rc1_lib.rows.spoken import spoken
from rc1_lib.text import candidate_windows
from rc1_lib.text.fuzzy_containment import word_weights
from rc1_lib.text.ngrams import contained, ngrams_of
from rc1_lib.text.normalization import folded, letters, read_folded, words, words_of_many
from rc1_lib.text.search import Search, Spelled
from rc1_lib.text.template_neighbours import Kin
from rc1_lib.text.token_ids import CodedTexts, Vocabulary, different, ranges
from tests.gates.planted_leaks import planted
from tests.shares import share

ODD = (
    "aB9 \n\t<>/b!-*_~`'’ʼ＇.,，。好果ΣσΑſßİı＜≮﹤\u00a0\u3000\u00a8\u0301\u00ad\u200b\u0489"
    "&;\\u4e2dn#l%20ᴀᏟ\U000e0020\U000e003c\U000e0062"
)
odd = st.text(st.sampled_from(ODD), max_size=30)
pieces = st.sampled_from(
    ["<b x>", "<!-- ", " -->", "&lt;b ", "&amp;lt;", "\\u003c", "%3cb ", "\\x3c", "\\\\n", "</i >", "b ", "Σ ", "ΑΣ\n"]
)
written = st.lists(odd | pieces, max_size=6).map("".join)


@pytest.fixture(scope="module")
def damaged(evidence: Evidence) -> pl.Series:
    """What rows say, a tenth of them with leaks of every kind and in every place."""
    rows, _ = planted(evidence.rows("pool"), evidence.rows("shadow"), 3)
    return spoken(rows)


@pytest.fixture(scope="module")
def held(evidence: Evidence) -> pl.DataFrame:
    return words(folded(question_texts(evidence.rows("shadow"))))


@given(st.lists(st.none() | written, max_size=5))
def test_words_are_those_of_whole_texts_though_read_piece_by_piece(texts: list[str | None]) -> None:
    series = pl.Series(texts, dtype=pl.String)
    assert_frame_equal(words_of_many(series), words(folded(series)))
    assert read_folded(series)[1].to_list() == letters(folded(series)).to_list()


def test_words_of_rows_with_leaks_are_those_of_whole_texts(damaged: pl.Series) -> None:
    assert damaged.str.contains("<").any()
    assert_frame_equal(words_of_many(damaged), words(folded(damaged)))
    assert read_folded(damaged)[1].to_list() == letters(folded(damaged)).to_list()


@pytest.mark.parametrize("ngram", share([2, 5], 5))
def test_a_search_finds_the_ngrams_that_all_words_hold(
    evidence: Evidence, damaged: pl.Series, held: pl.DataFrame, ngram: int
) -> None:
    wanted = ngrams_of(held, ngram)
    search = Search(folded(question_texts(evidence.rows("shadow"))), wanted, ngram)
    for first in range(0, len(damaged), 70):
        search.read(damaged.slice(first, 70))
    everything = words(folded(damaged))
    found = contained(everything, ngram, wanted)
    assert found.height > 50
    assert_frame_equal(search.repeated, found, check_exact=True)
    letter_by_letter = Spelled(folded(question_texts(evidence.rows("shadow")))).found_in(folded(damaged))
    assert letter_by_letter.height > 0
    assert_frame_equal(search.spelled, letter_by_letter)
    assert search.texts.codes.tolist() == Vocabulary(held).coded(everything, len(damaged)).codes.tolist()
    assert search.texts.ends.tolist() == Vocabulary(held).coded(everything, len(damaged)).ends.tolist()


def test_kin_are_counted_as_in_plain_python(evidence: Evidence, held: pl.DataFrame) -> None:
    own = words(folded(question_texts(evidence.rows("pool").head(150))))
    asked = {row[0]: part["word"].to_list() for row, part in held.group_by("row")}
    questions = [part["word"].to_list() for part in own.partition_by("row")]
    pairs = {text: set(pairwise(said)) for text, said in asked.items()}
    expected = Counter[tuple[str, object, object]]()
    for said in questions:
        own_pairs = set(pairwise(said))
        expected.update(("by_all", 0, word) for word in set(said))
        for text, theirs in pairs.items():
            if len(own_pairs & theirs) >= max(0.3 * len(theirs), 1):
                expected["kin", text, 0] += 1
                expected.update(("by_kin", text, word) for word in set(said))
    kin = Kin(held)
    kin.count(own)
    counts = kin.counts()
    assert {(text, word) for text, word in counts.select("held", "word").iter_rows()} == {
        (text, word) for text, said in asked.items() for word in said
    }
    assert (counts["kin"] > 1).any()
    for text, word, by_all, of_kin, by_kin in counts.iter_rows():
        found = (expected["by_all", 0, word], expected["kin", text, 0], expected["by_kin", text, word])
        assert (by_all, of_kin, by_kin) == tuple(max(1, count) for count in found)


def plain_units(codes: list[int], vocabulary: Vocabulary) -> list[int]:
    """The unit that begins at each word of one text: of Chinese, two characters where two follow one another."""
    found = []
    for code, following in zip(codes, [*codes[1:], 0], strict=False):
        both = bool(vocabulary.han[code] and vocabulary.han[following])
        found.append(code * vocabulary.size + following if both else code)
    return found


def test_units_are_found_and_counted_where_they_stand(
    damaged: pl.Series, held: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pl.concat([pl.Series(["", "如果"]), damaged.head(60), pl.Series(["", "果"])])
    vocabulary = Vocabulary(held)
    coded = vocabulary.coded(words(folded(texts)), len(texts))
    units = [unit for text in range(len(texts)) for unit in plain_units(coded.of(text), vocabulary)]
    asked = vocabulary.coded(held)
    sought = np.unique([unit for text in range(len(asked.ends)) for unit in plain_units(asked.of(text), vocabulary)])
    assert (sought >= vocabulary.size).any()
    monkeypatch.setattr(candidate_windows, "_AT_ONCE", 7)
    seen = [pair for places, found in candidate_windows._seen(coded, sought, vocabulary)
            for pair in zip(places.tolist(), sought[found].tolist(), strict=True)]  # fmt: skip
    wanted = set(sought.tolist())
    assert seen == [(place, unit) for place, unit in enumerate(units) if unit in wanted]
    often = candidate_windows._counted(coded, sought, vocabulary)
    counted = Counter(units)
    assert dict(zip(sought.tolist(), often.tolist(), strict=True)) == {unit: counted[unit] for unit in sought.tolist()}


def test_places_are_the_same_where_numbers_for_them_are_few(
    evidence: Evidence, damaged: pl.Series, held: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary, own = Vocabulary(held), words(folded(question_texts(evidence.rows("pool"))))
    coded = vocabulary.coded(words(folded(damaged)), len(damaged))
    weights = word_weights(own, held)
    found = candidate_windows.windows(coded, held, weights, vocabulary, 0.3)
    assert found.height > 50
    monkeypatch.setattr(candidate_windows, "_ROOM", 10**8)
    assert_frame_equal(candidate_windows.windows(coded, held, weights, vocabulary, 0.3), found)


def test_windows_hold_the_share_of_the_units_that_stand_in_them() -> None:
    """Units of weights 3 and 1 of a text of four words, at word 9 and at words 4 and 10 of the searched one."""
    units = pl.DataFrame({"held": [0, 0], "step": [4, 4], "share": [0.75, 0.25]}).cast({"held": pl.UInt32})
    places = (np.array([2, 2, 2]), np.array([4, 9, 10]), np.array([1, 0, 1]))
    found = candidate_windows._dense(*places, units, 0.25)
    assert found.rows() == [(2, 0, 0, 8), (2, 0, 4, 12), (2, 0, 8, 16)]
    assert candidate_windows._dense(*places, units, 1.0).rows() == [(2, 0, 4, 12), (2, 0, 8, 16)]


@given(st.lists(st.integers(-5, 5)))
def test_numbers_are_told_apart_as_numpy_does(numbers: list[int]) -> None:
    array = np.array(numbers, np.int64)
    assert different(array).tolist() == np.unique(array).tolist()


def test_ranges_lie_one_behind_the_other() -> None:
    assert ranges(np.array([5, 0, 7]), np.array([2, 0, 3])).tolist() == [5, 6, 7, 8, 9]
    assert CodedTexts(np.arange(6), np.array([2, 2, 6])).take(np.array([2, 1, 0])).codes.tolist() == [2, 3, 4, 5, 0, 1]
