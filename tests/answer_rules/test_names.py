"""Names are compared as in HotpotQA's evaluation, except where this rule deliberately differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.answer_rules.names import name_f1, normalise_name, same_name
from tests.answer_rules.plain_rules import published

RIGHT = (
    ("case", "ithwyn", "Ithwyn"),
    ("case", "ITHWYN", "Ithwyn"),
    ("articles", "The River Ithwyn", "a river Ithwyn"),
    ("articles", "river Ithwyn", "the river Ithwyn"),
    ("marks at the ends", "Ithwyn!", "Ithwyn"),
    ("marks at the ends", "'Ithwyn'", "Ithwyn"),
    ("marks at the ends", "__Ithwyn__", "Ithwyn"),
    ("marks at the ends", "[Ithwyn]", "Ithwyn"),
    ("dots", "JK Rowling", "J.K. Rowling"),
    ("dots", "Dr Who", "Dr. Who"),
    ("dots", "UK", "U.K."),
    ("dots", "3 pm", "3 p.m."),
    ("hyphens", "XMen", "X-Men"),
    ("hyphens", "well known", "well known"),
    ("apostrophes", "Oliviers", "Olivier's"),
    ("apostrophes", "DArtagnan", "D'Artagnan"),
    ("signs", "MM", "M&M"),
    ("signs", "7 dollars", "$7 dollars"),
    ("signs", "20 percent", "20 percent%"),
    ("white space", "  river\u00a0 Ithwyn \n", "river Ithwyn"),
    ("commas", "Bergen Norway", "Bergen, Norway"),
    ("commas", "2,500", "2500"),
)
WRONG = (
    ("hyphens", "X Men", "X-Men"),
    ("hyphens", "The-Ithwyn", "Ithwyn"),
    ("dots", "J K Rowling", "J.K. Rowling"),
    ("marks beyond ASCII", "“Ithwyn”", "Ithwyn"),
    ("marks beyond ASCII", "D’Artagnan", "D'Artagnan"),
    ("marks beyond ASCII", "X–Men", "X-Men"),
    ("signs", "M and M", "M&M"),
    ("accents", "Ithwýn", "Ithwyn"),
    ("hedges", "Ithwyn or Salkoth", "Ithwyn"),
    ("hedges", "Ithwyn, Salkoth", "Ithwyn"),
    ("hedges", "not Ithwyn", "Ithwyn"),
    ("hedges", "maybe Ithwyn", "Ithwyn"),
    ("more words", "Ithwyn in the north", "Ithwyn"),
    ("more words", "The answer is Ithwyn", "Ithwyn"),
    ("fewer words", "Ithwyn", "Ithwyn Falls"),
    ("nothing", "", "Ithwyn"),
    ("nothing", "...", "Ithwyn"),
    ("nothing", "the", "Ithwyn"),
    ("nothing", "", "The The"),
    ("nothing", " ", "A"),
    ("nothing", "...", "?"),
)


@pytest.mark.parametrize(("kind", "given_answer", "gold"), RIGHT)
def test_equal_names_are_right(kind: str, given_answer: str, gold: str) -> None:
    assert same_name(given_answer, gold), kind


@pytest.mark.parametrize(("kind", "given_answer", "gold"), WRONG)
def test_different_texts_are_wrong(kind: str, given_answer: str, gold: str) -> None:
    assert not same_name(given_answer, gold), kind


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


@pytest.mark.parametrize("answer", ["塞尔科", "塞尔科。", "《塞尔科》", "“塞尔科”", " 塞尔科！"])
def test_chinese_names_are_compared_without_punctuation(answer: str) -> None:
    assert same_name(answer, "塞尔科")
    assert not same_name(f"{answer}或伊斯温", "塞尔科")
    assert not same_name("。", "塞尔科")


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
