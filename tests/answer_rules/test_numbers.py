"""An answer is one definite number or none: examples by kind, properties, and hostile text."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.answer_rules.numbers import last_number, number_in, same_number

SPELLINGS = (
    "{}", "{}.", "**{}**", "${}$", r"\boxed{{{}}}", "[{}]", '"{}"', "x = {}", "#### {}", "The answer is {}.",
    "{} clips", "{} dollars", "Total: {}", "In 2 hours she earns {} dollars", "{} in total", "共{}个", "答案是{}。",
    "≈{}", "{}%",
)  # fmt: skip
BETWEEN = (
    " or ", ", ", "; ", " and ", " to ", "/ or ", " | ", "、", "或", "到", " vs ", "\n", " ... ",
    "? ", ". No, ", " (or ",
)  # fmt: skip
DENIED = (
    "not {}", "more than {}", "at least {}", "less than {}", "up to {}", "if {}", "{}?", "maybe {}", "{} or so",
    "{} is wrong", "不是{}", "至少{}", "超过{}", "{}以上", "<{}", "≥{}", "twice {}", "x + {}", "{}+", "from 0.5 to {}",
    "every number up to {}",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(number=st.integers(-(10**9), 10**9))
def test_integer_is_right_in_every_spelling_and_its_neighbour_is_wrong(spelling: str, number: int) -> None:
    assert same_number(spelling.format(number), str(number))
    assert not same_number(spelling.format(number + 1), str(number))


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(number=st.decimals(-(10**6), 10**6, places=2))
def test_decimal_is_right_in_every_spelling_and_its_neighbour_is_wrong(spelling: str, number: Decimal) -> None:
    assert same_number(spelling.format(number), str(number))
    assert not same_number(spelling.format(number + Decimal("0.01")), str(number))


@given(number=st.integers(1, 10**15))
def test_thousands_separators_are_read(number: int) -> None:
    for separator in (",", "_", "'", "\u00a0", "\u202f", "\u2009", "\\,", "{,}", "，"):
        written = f"{number:,}".replace(",", separator)
        assert same_number(written, str(number))
        assert not same_number(written, str(number + 1))


@given(one=st.integers(0, 999), other=st.integers(0, 999), between=st.sampled_from(BETWEEN))
def test_two_different_numbers_are_not_an_answer(one: int, other: int, between: str) -> None:
    if one != other:
        read = number_in(f"{one}{between}{other}")
        assert read not in (one, other), between


@given(number=st.integers(0, 10**6), denied=st.sampled_from(DENIED))
def test_denied_compared_or_doubted_number_is_not_an_answer(number: int, denied: str) -> None:
    assert number_in(denied.format(number)) is None


@given(st.text(st.sampled_from("0123456789.,-+*/^()= xeE万千百一二三分之点$%\\{}frac½⑦or not"), max_size=40))
def test_number_like_text_is_compared_without_an_error(text: str) -> None:
    assert same_number(text, "7") in {True, False}


@pytest.mark.parametrize(
    "text", ["9" * 900, "1e999999", "2^2^2^2^2^2", "((((" * 200, "1 2 " * 200, "1,234," * 150, "七" * 500, "-" * 900]
)
def test_oversized_numbers_are_not_an_answer(text: str) -> None:
    assert number_in(text) is None


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("She sold 60 and 24, so 60 + 24 = 84 clips.", "84"),
        ("60 in April.\n24 in May.\nThat is 84.", "84"),
        ("So she earns 84 dollars in those 2 hours of 3.", "3"),
        ("共84个。", "84"),
        ("It is 84. I am sure of that.", "84"),
        ("She has 84. This is not the number of May.", "84"),
        ("She sells 84 clips. She did not buy any. Nothing else is asked.", "84"),
        ("Clips cost $2 a pound and 42 pounds cost $84.", "84"),
        ("She works from 8 a.m. to 5 p.m., so she works 9 hours.", "9"),
        ("eighty-four", "84"),
    ],
)
def test_last_number_is_the_answer_without_a_mark(message: str, answer: str) -> None:
    assert same_number(last_number(message), answer)


@pytest.mark.parametrize(
    "message",
    [
        "It is 12 or 84", "between 12 and 84.", "Not 84", "I do not know", "", "At least 84.",
        "She has 84. That is wrong.", "84.\nNo, wait.", "共84个。不对。",
    ],
)  # fmt: skip
def test_hedge_without_a_mark_is_not_an_answer(message: str) -> None:
    assert number_in(last_number(message)) is None
