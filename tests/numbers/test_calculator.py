"""The calculator against results worked out by hand, exact fractions and malicious input."""

from __future__ import annotations

import inspect
import operator
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.numbers.calculator import MAX_MAGNITUDE, CalculatorError, calculate, evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("48/2", "24"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "0.333333"),
        ("200000/3", "66666.666667"),
        ("1/300000", "0.00000333333"),
        ("007 + 1.50", "8.5"),
        ("17 // 5", "3"),
        ("17 % 5", "2"),
        ("-(3 - 5) * +2", "4"),
        ("12 > 9", "yes"),
        ("0.5 = 1/2", "yes"),
        ("3 >= 3", "yes"),
    ],
)
def test_arithmetic_is_exact_and_written_plainly(expression: str, expected: str) -> None:
    assert calculate(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')", "().__class__", "9**9**9", "1e400", "9" * 200, "*".join(["999999"] * 28),
        "(" * 199 + "1", "1" + "+1" * 4000, "1/0", "5 % 0", "", "1 2", "3(4)", "1 < 2 < 3", "(1 < 2) + 1", "x = 3",
        "1,000", "1\n2", "٣+١",
    ],
)  # fmt: skip
def test_everything_except_small_arithmetic_raises_an_error(expression: str) -> None:
    with pytest.raises(CalculatorError, match=r"^[A-Z].+\.$"):
        calculate(expression)


_LEAF = st.one_of(
    st.integers(0, 5000).map(lambda number: (str(number), Fraction(number))),
    st.decimals(0, 500, places=2).map(lambda number: (str(number), Fraction(number))),
)
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _join(inner: st.SearchStrategy[tuple[str, Fraction]]) -> st.SearchStrategy[tuple[str, Fraction]]:
    def build(parts: tuple[tuple[str, Fraction], str, tuple[str, Fraction]]) -> tuple[str, Fraction]:
        (left, left_value), sign, (right, right_value) = parts
        if sign == "/" and right_value == 0:
            sign = "+"
        return f"({left} {sign} {right})", _OPERATORS[sign](left_value, right_value)

    return st.tuples(inner, st.sampled_from(sorted(_OPERATORS)), inner).map(build)


@given(st.recursive(_LEAF, _join, max_leaves=6))
def test_the_value_equals_exact_fractions(case: tuple[str, Fraction]) -> None:
    expression, expected = case
    if len(expression) <= 200 and abs(expected) <= MAX_MAGNITUDE:
        try:
            assert evaluate(expression) == expected
        except CalculatorError as error:
            # The limit applies to every part, even if a large part cancels out.
            assert "too large" in str(error)


@given(st.text(alphabet="0123456789.+-*/%()<>=! ", max_size=30))
def test_any_text_of_allowed_characters_gives_a_plain_result_or_an_error(expression: str) -> None:
    try:
        result = calculate(expression)
    except CalculatorError:
        return
    assert result in {"yes", "no"} or set(result) <= set("-0123456789.")


def test_deep_nesting_does_not_use_pythons_call_stack() -> None:
    def from_below(frames: int) -> str:
        return calculate("-" * 199 + "1") if frames == 0 else from_below(frames - 1)

    depth = sys.getrecursionlimit() - len(inspect.stack()) - 120
    assert from_below(depth) == calculate("-" * 199 + "1") == "-1"
