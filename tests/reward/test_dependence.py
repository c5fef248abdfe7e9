"""On which of its numbers a chain of sums depends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.calculator import evaluate
from rc1_lib.language.numerals import operands
from rc1_lib.reward.dependence import Link, depends_on


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("3*4+5", {"3", "4", "5"}),
        ("(12-12)*30", set()),
        ("(12-12)*30+7", {"7"}),
        ("30*(7-4-3)", {"7", "4", "3"}),  # comes to nothing as it stands, and would not with others
        ("9+30*(7-4-3)", {"9", "7", "4", "3"}),
        ("8*60/60", {"8"}),
        ("5+8-8", {"5"}),
        ("5+8>5", {"8"}),
        ("5+8>4", {"5", "8", "4"}),
        ("5>5", set()),
        ("0*9", {""}),
        ("17%5", {"17", "5"}),
        ("17//5", {"17", "5"}),
        ("7//4", {"7", "4"}),
        ("7+9%1", {"7", "1"}),  # 9 gives nothing, whatever stands in its place
        ("50*.2", {"50", ".2"}),
        ("1,000*2-1,000*2", set()),
        ("(" + "9" * 90 + "-" + "9" * 90 + ")*2", {"9" * 90, "2"}),  # too large for the calculator: no word on it
        ("2 pages * 3", {"2", "3"}),
    ],
)
def test_a_number_counts_if_another_would_change_the_result(expression: str, numbers: set[str]) -> None:
    chain: list[Link] = [(expression, [None] * len(operands(expression)))]
    assert depends_on(chain, {}) == numbers


def test_what_cancels_in_a_later_sum_does_not_count() -> None:
    chain: list[Link] = [("12+30", [None, None]), ("42-12", [0, None])]
    assert depends_on(chain, {}) == {"30"}
    assert depends_on(chain, {"12": 1}) == {"30"}


def test_a_number_that_was_told_twice_may_cancel_by_chance() -> None:
    chain: list[Link] = [("90*3/5", [None, None, None]), ("54/3", [0, None])]
    assert depends_on(chain, {"3": 1}) == {"90", "5"}
    assert depends_on(chain, {"3": 2}) == {"90", "5", "3"}


def test_a_result_that_is_used_twice_may_cancel() -> None:
    chain: list[Link] = [("3*4", [None, None]), ("12-12+5", [0, 0, None])]
    assert depends_on(chain, {}) == {"5"}


def test_a_result_below_zero_is_taken_with_its_sign() -> None:
    chain: list[Link] = [("3-8", [None, None]), ("9+-5", [None, 0])]
    assert depends_on(chain, {}) == {"3", "8", "9"}


def test_an_expression_filled_up_to_the_calculators_limit_hides_nothing() -> None:
    filled = "(12-12)*30" + " " * 190
    assert len(filled) == 200
    assert depends_on([(filled, [None, None, None])], {}) == frozenset()


@given(st.lists(st.integers(2, 999), min_size=1, max_size=6, unique=True), st.data())
def test_without_repeats_brackets_and_zeros_every_number_counts(numbers: list[int], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from("+-*/"), min_size=len(numbers) - 1, max_size=len(numbers) - 1))
    written = "".join(f"{sign}{number}" for sign, number in zip(["", *signs], numbers, strict=True))
    assert depends_on([(written, [None] * len(numbers))], {}) == set(map(str, numbers))
    for place in range(len(numbers)):
        others = [*numbers[:place], numbers[place] * 7 + 1, *numbers[place + 1 :]]
        other = "".join(f"{sign}{number}" for sign, number in zip(["", *signs], others, strict=True))
        assert evaluate(other) != evaluate(written)
