"""What a sum was made of, taken back through the sums before it."""

from __future__ import annotations

import json

import pytest

from rc1_lib.reward.sums import chosen_side, worked
from rc1_lib.scoring.transcript import Call


def sums(*made: tuple[str, str]) -> list[Call]:
    return [
        Call("calc", json.dumps({"expression": expression}), place, result)
        for place, (expression, result) in enumerate(made)
    ]


@pytest.mark.parametrize(
    ("made", "made_of"),
    [
        ([("3*4", "12")], {"3", "4"}),
        ([("3*4", "12"), ("12+7", "19")], {"3", "4", "7"}),
        ([("3*4", "12"), ("5*6", "30")], {"5", "6"}),  # the first leads to nothing
        ([("3*4", "12"), ("12+12", "24")], {"3", "4"}),
        ([("53*5", "265"), ("265>301", "no")], {"53", "5", "301"}),
        ([("5<6", "yes"), ("6+1", "7")], {"6", "1"}),  # a verdict is no number
        ([("3*4", "")], {"3", "4"}),
    ],
)
def test_a_result_stands_for_what_it_was_made_of(made: list[tuple[str, str]], made_of: set[str]) -> None:
    assert set(worked(sums(*made), {}).made_of) == made_of


def test_a_number_stands_for_the_last_sum_before_it_and_never_for_a_later_one() -> None:
    assert set(worked(sums(("1+9", "10"), ("4+6", "10"), ("10+5", "15")), {}).made_of) == {"4", "6", "5"}
    assert set(worked(sums(("10+5", "15"), ("4+6", "10")), {}).made_of) == {"4", "6"}


@pytest.mark.parametrize(
    ("made", "idle"),
    [
        ([("7+0", "7")], True),
        ([("0+7", "7")], True),
        ([("7-0", "7")], True),
        ([("1*7", "7")], True),
        ([("7/1", "7")], True),
        ([("7", "7")], True),
        ([("", "")], True),
        ([("7+5", "12"), ("12-5", "7")], True),
        ([("7*5", "35"), ("35/5", "7")], True),
        ([("6-3", "3")], False),
        ([("4/2", "2")], False),
        ([("7*60/60", "7")], True),
        ([("(12-12)*30", "0")], True),
        ([("(12-12)*30+7", "7")], True),
        ([("14+8", "22"), ("22-18", "4")], False),
    ],
)
def test_a_sum_that_gives_back_its_number_is_idle(made: list[tuple[str, str]], idle: bool) -> None:
    assert worked(sums(*made), {}).is_idle is idle


@pytest.mark.parametrize(
    ("expression", "told", "is_told"),
    [
        ("3*4", {"3", "4"}, True),
        ("3*4", {"3"}, False),
        ("3*60", {"3"}, True),  # minutes of an hour
        ("3*2", {"3"}, True),
        ("3/2", {"3"}, True),
        ("3+2", {"3"}, False),
        ("3*2.5", {"3"}, False),
        ("50*.2", {"50", "20", "100"}, True),  # 20 percent
        ("50*0.8", {"50", "20", "100"}, True),
        ("50*1.2", {"50", "20", "100"}, True),
        ("50*.3", {"50", "20", "100"}, False),
        ("50*.2", {"50", "20"}, False),  # 20 of something else
        ("9" * 400 + "*.2", {"9" * 400, "100", "20"}, True),
    ],
)
def test_a_number_was_told_or_is_a_unit_or_a_percentage(expression: str, told: set[str], is_told: bool) -> None:
    assert worked(sums((expression, "1")), {}).is_told(told) is is_told


COUNTS = {"9": frozenset({"day"}), "18": frozenset({"mule"}), "4": frozenset({"bucket"}), "6": frozenset({"bucket"})}


@pytest.mark.parametrize(
    ("expression", "mixes"),
    [
        ("18+9", True),
        ("18-9", True),
        ("18+4+9", True),
        ("18*4", False),
        ("4*6", True),
        ("4+6", False),
        ("(18)+(9)", True),
        ("18*4+9", False),  # what stands before the sign is a product
        ("(18*4)+9", False),
        ("18<9", False),
        ("18+5", False),  # what 5 counts nobody knows
        ("4*4", False),
    ],
)
def test_what_is_added_counts_the_same_and_what_is_multiplied_does_not(expression: str, mixes: bool) -> None:
    assert worked(sums((expression, "1")), {}).mixes(COUNTS) is mixes
    assert not worked(sums((expression, "1")), {}).mixes({**COUNTS, **dict.fromkeys(COUNTS, frozenset({"", "mule"}))})


def test_a_result_counts_nothing_that_was_told() -> None:
    made = worked(sums(("2*2", "4"), ("18+4", "22")), {})
    assert not made.mixes(COUNTS)


@pytest.mark.parametrize(
    ("made", "side"),
    [
        ([("30>20", "yes")], {"30"}),
        ([("30>20", "no")], {"20"}),
        ([("30<=20", "是")], {"30"}),
        ([("5*6", "30"), ("30>20", "yes")], {"5", "6"}),
        ([("5*6", "30"), ("20>30", "no")], {"5", "6"}),
        ([("30==20", "no")], set()),
        ([("1<2<3", "yes")], set()),
    ],
)
def test_a_comparison_speaks_for_one_side(made: list[tuple[str, str]], side: set[str]) -> None:
    assert chosen_side(sums(*made), {}) == side


def test_sums_of_one_message_cannot_use_each_others_results() -> None:
    beside = [Call("calc", "3*4", 0, "12"), Call("calc", "12+5", 0, "17")]
    assert set(worked(beside, {}).made_of) == {"12", "5"}


def test_a_call_that_is_no_json_is_read_as_it_stands() -> None:
    made = worked([Call("calc", "3 * 4", 0, "12")], {})
    assert (made.made_of, made.pairs, made.result) == (("3", "4"), frozenset({("3", "*", "4")}), "12")


def test_a_number_that_was_told_stands_for_itself_once_the_result_is_used() -> None:
    made = sums(("140*5/100", "7"), ("140-7", "133"), ("133/7", "19"))
    assert sorted(worked(made, {"140": 1, "5": 1, "7": 1}).made_of) == ["100", "140", "140", "5", "7"]
    assert sorted(worked(made, {"140": 1, "5": 1}).made_of) == ["100", "140", "140", "5"]


@pytest.mark.parametrize(
    ("expression", "told", "share"),
    [
        ("50*20/100", {"50", "20", "100"}, 1.0),
        ("50*.2", {"50", "20", "100"}, 1.0),
        ("50*(1-0.2)", {"50", "20", "100"}, 1.0),
        ("50*.3", {"50", "20", "100"}, 1 / 2),
        ("50*.2", {"50", "20"}, 1 / 2),  # 20 of something else
        ("50-1", {"50", "20", "100"}, 1 / 2),  # 1 is a share of 100 percent, and of nothing else that was told
        ("50*2", {"50", "20", "100"}, 1 / 2),
        ("(50-50)*20", {"50", "20"}, 0.0),
    ],
)
def test_a_percentage_that_was_told_may_be_taken_as_a_share(expression: str, told: set[str], share: float) -> None:
    made = worked(sums((expression, "1")), dict.fromkeys(told, 1))
    assert made.takes({"50", "20"}, told) == share
