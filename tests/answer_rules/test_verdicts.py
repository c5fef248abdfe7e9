"""Yes or no, in whole statements of both languages; hedges and contradictions are neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.answer_rules.verdicts import last_verdict, same_verdict, verdict_in
from tests.answer_rules.verdict_pairs import NEITHER, NO, YES, answers


@pytest.mark.parametrize("answer", answers(YES))
def test_what_says_yes_is_yes(answer: str) -> None:
    assert same_verdict(answer, "yes")
    assert not same_verdict(answer, "no")


@pytest.mark.parametrize("answer", answers(NO))
def test_what_says_no_is_no(answer: str) -> None:
    assert same_verdict(answer, "no")
    assert not same_verdict(answer, "yes")


@pytest.mark.parametrize("answer", answers(NEITHER))
def test_what_says_both_or_none_is_neither(answer: str) -> None:
    assert verdict_in(answer) is None


BOTH = st.tuples(st.sampled_from(answers(YES)), st.sampled_from(answers(NO)))
BETWEEN = st.sampled_from((" or ", "/", ", ", "; ", " and ", "\n", "。", " 或 ", ". No wait, ", " | or "))


@given(pair=BOTH, between=BETWEEN, swapped=st.booleans())
def test_one_verdict_and_the_other_is_never_paid_as_both(pair: tuple[str, str], between: str, *, swapped: bool) -> None:
    """Some read on as an explanation ("Yes, ... not"); none is right whatever the gold answer is."""
    text = between.join(reversed(pair) if swapped else pair)
    assert not (same_verdict(text, "yes") and same_verdict(text, "no"))


@pytest.mark.parametrize("between", [" or ", "/", ", ", "; ", " and ", "\n", " ", ". ", "? ", " - ", "... "])
def test_both_words_are_neither(between: str) -> None:
    for one, other in (
        ("yes", "no"),
        ("true", "false"),
        ("correct", "incorrect"),
        ("是", "否"),
        ("对", "错"),
        ("能", "不能"),
    ):
        assert verdict_in(f"{one}{between}{other}") is None
        assert verdict_in(f"{other}{between}{one}") is None


@given(st.text(st.characters(), max_size=80))
def test_any_text_is_a_verdict_or_none(text: str) -> None:
    assert verdict_in(text) in {True, False, None}


def test_a_whole_page_is_no_verdict() -> None:
    assert verdict_in(f"Yes. {'It is a long story. ' * 80}") is None


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
def test_without_a_mark_the_last_sentence_with_a_verdict_counts(message: str, verdict: bool | None) -> None:
    assert verdict_in(last_verdict(message)) is verdict
