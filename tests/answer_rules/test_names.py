"""Names are compared as in HotpotQA's evaluation, except where this rule deliberately differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.answer_rules.names import name_f1, normalise_name, same_name
from tests.answer_rules.plain_rules import published


@given(st.text(st.characters(), max_size=60))
def test_normalisation_matches_the_published_one(text: str) -> None:
    assert normalise_name(text) == published(text)


@given(st.text(st.characters(), max_size=40), st.text(st.characters(exclude_characters="."), max_size=40))
def test_answer_without_letter_or_digit_is_never_right(answer: str, gold: str) -> None:
    if not any(mark.isalnum() for mark in answer):
        assert not same_name(answer, gold)


def test_aliases_are_right() -> None:
    assert same_name("nyc", "New York City", ["NYC", "Big Apple"])
    assert same_name("The Big Apple", "New York City", ["NYC", "Big Apple"])
    assert not same_name("", "New York City", ["", "NYC"])


@pytest.mark.parametrize(
    ("given_answer", "gold", "f1"),
    [
        ("the river Ithwyn", "Ithwyn", 2 / 3),
        ("Ithwyn", "the Ithwyn", 1.0),
        ("Salkoth", "Ithwyn", 0.0),
        ("", "Ithwyn", 0.0),
        ("Ithwyn Ithwyn", "Ithwyn", 2 / 3),
        ("yes it is", "yes", 0.0),
        ("塞尔科河", "塞尔科", 6 / 7),
    ],
)
def test_f1_counts_shared_tokens_and_chinese_characters(given_answer: str, gold: str, f1: float) -> None:
    assert name_f1(given_answer, gold) == pytest.approx(f1)


def test_f1_uses_the_best_alias() -> None:
    assert name_f1("big apple pie", "New York City", ["Big Apple"]) == pytest.approx(0.8)
