"""Yes or no in whole statements of both languages; hedges and contradictions have no verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.answer_rules.verdicts import last_verdict, verdict_in


@pytest.mark.parametrize("between", [" or ", "/", ", ", "; ", " and ", "\n", " ", ". ", "? ", " - ", "... "])
def test_contradicting_words_have_no_verdict(between: str) -> None:
    pairs = (("yes", "no"), ("true", "false"), ("correct", "incorrect"), ("是", "否"), ("对", "错"), ("能", "不能"))
    for one, other in pairs:
        assert verdict_in(f"{one}{between}{other}") is None
        assert verdict_in(f"{other}{between}{one}") is None


def test_verdict_that_is_confirmed_stays() -> None:
    for text in ("No, that's a lie", "False. It is a lie.", "The truth is no"):
        assert verdict_in(text) is False
    assert verdict_in("Yes. The truth is that it is.") is True


@pytest.mark.parametrize(
    "text",
    [
        "Yes, presumably",
        "Yes, my best guess",
        "Yes. That's a lie.",
        "Yes. Scratch that.",
        "Yes. The truth is no.",
        "Yes. I take it back.",
        "The answer is anything but yes",
        "!yes",
    ],
)
def test_verdict_that_is_doubted_or_taken_back_is_none(text: str) -> None:
    assert verdict_in(text) is None


@given(st.text(st.characters(), max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert verdict_in(text) in {True, False, None}


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("It is bigger. The answer is yes.", True),
        ("No. It has no wings.", False),
        ("是的。它更大。", True),
        ("I looked it up.\nNo", False),
        ("It may be.", None),
        ("", None),
    ],
)
def test_last_sentence_with_a_verdict_is_the_answer_without_a_mark(message: str, verdict: bool | None) -> None:
    assert verdict_in(last_verdict(message)) is verdict
