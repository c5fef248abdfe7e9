"""The tokenizer gives the same words in polars and in Python."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.text.tokens import length, text_length, tokenize, tokens

# Without unassigned code points: Rust and Python may have different versions of Unicode.
assigned_characters = st.text(st.characters(exclude_categories=("Cs", "Cn", "Co")), max_size=40)
ascii_only = st.text(st.characters(max_codepoint=127), max_size=40)
mixed = st.text(st.sampled_from("aB3é 'ʼ’-.,…好的々〇すが゙ーイ้นำ។ក្ខ。，ßΣİı\u0301\n\t½"), max_size=40)


def by_polars(text: str) -> list[str]:
    found: list[str] = pl.DataFrame({"text": [text]}).select(tokens("text")).item().to_list()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Harn's jars, 48/2!", ["harn's", "jars", "48", "2"]),
        ("Don’t STOP", ["don’t", "stop"]),
        ("'quoted' rock 'n' roll", ["quoted", "rock", "n", "roll"]),
        ("他有3个苹果。", ["他", "有", "3", "个", "苹", "果"]),
        ("在Velt市", ["在", "velt", "市"]),
        ("3.5 e-mail café", ["3", "5", "e", "mail", "café"]),
        ("すしが2つ", ["す", "し", "が", "2", "つ"]),
        ("น้ำ 3 ขวด", ["น้ํ", "า", "3", "ข", "ว", "ด"]),
        ("…。!?", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_or_single_characters_in_scripts_without_spaces(
    text: str, expected: list[str]
) -> None:
    assert tokenize(text) == expected
    assert by_polars(text) == expected


@given(ascii_only | assigned_characters | mixed)
def test_polars_and_python_give_the_same_tokens(text: str) -> None:
    assert by_polars(text) == tokenize(text)


@given(ascii_only | assigned_characters | mixed)
def test_polars_and_python_give_the_same_length(text: str) -> None:
    frame = pl.DataFrame({"text": [text]})
    assert frame.select(length("text")).item() == text_length(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("Don't stop, now!", 5), ("他有3个苹果。", 7), ("48/2=24", 5), ("a — b", 3), ("  \n", 0)]
)
def test_length_counts_words_han_characters_and_marks(text: str, expected: int) -> None:
    assert text_length(text) == expected
