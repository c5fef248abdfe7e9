"""The gate `missing_piece`: what is missing is missing, nothing else is, and nobody can do without asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import polars as pl
import pytest

from rc1_lib import records
from rc1_lib.gates.missing_piece import BY_TASK, BY_WORDS, Fault, SolverOf, as_seen, missing_piece_gate
from rc1_lib.records import GateResult, Status
from rc1_lib.rows.closure import closure
from tests.gates import toy_pieces
from tests.gates.damages import first
from tests.gates.damages_of_pieces import (
    complete,
    gone,
    list_the_title,
    needing,
    quote_the_fact,
)
from tests.gates.toy_pieces import Row, solver

READER = "right without asking, reader of all texts, low end[hotpotqa]"
RECORDED = "right without asking, recorded dialogues, low end[hotpotqa]"


def with_solver(_: records.Row) -> toy_pieces.Any:
    return solver


def none(_: records.Row) -> None:
    return None


def judged(rows: list[Row], solver_of: SolverOf = with_solver, **more: pl.DataFrame) -> GateResult:
    files = {"pool": toy_pieces.frame(rows), **more}
    return missing_piece_gate(files, solver_of)


def named(fault: Fault) -> str:
    return f"{fault}, share[hotpotqa]"


def failing(result: GateResult) -> set[str]:
    return {check.name for check in result.failures}


def values(result: GateResult) -> dict[str, object]:
    return {check.name: check.value for check in result.checks}


@pytest.mark.parametrize("solver_of", [with_solver, none])
def test_rows_whose_piece_is_missing_pass(solver_of: SolverOf) -> None:
    rows = toy_pieces.rows()
    if solver_of is none:  # without a solver nobody can tell an ambiguous description from a leak
        rows = [row for row in rows if not needing(row, "ambiguous")]
    result = judged(rows, solver_of)
    assert (result.status, result.offenders) == (Status.PASSED, ())
    assert values(result)["needing rows, the piece gone[hotpotqa]"] == 20


def test_words_that_stand_in_needing_rows_alone_fail() -> None:
    """Otherwise a rule on them asks where it should and nowhere else."""
    rows = [
        *(toy_pieces.row(number, "gone") for number in range(60)),
        *(toy_pieces.row(60 + n, "complete") for n in range(60)),
    ]
    for row in rows[:60]:
        row["slot"]["vague"] = "a certain one"
        row["messages"][1]["content"] = f"{row['messages'][1]['content']} Is it a certain one?"
    check = f"{BY_WORDS}, low end[hotpotqa]"
    assert failing(judged(rows, none)) == {check}
    for row in rows[60:90]:
        row["messages"][1]["content"] = f"{row['messages'][1]['content']} Is it A certain one?"
    assert failing(judged(rows, none)) == set() and values(judged(rows, none))[check] == pytest.approx(0.306, abs=0.01)
    assert failing(judged(rows[:5] + rows[-5:], none)) == set(), "few rows say nothing"
    plain = [toy_pieces.row(number, "complete") for number in range(200, 260)]
    assert failing(judged(rows, none, shadow=toy_pieces.frame(rows[:60] + plain))) == {check}, "a file at fault alone"
    rows[0]["slot"]["vague"] = "the"
    for row in plain:
        row["messages"][1]["content"] = f"{row['messages'][1]['content']} Name the one."
    assert failing(judged(rows[:60] + plain, none)) == {check}, "a word that stands everywhere hides no other"


def test_rows_that_their_task_alone_tells_apart_fail() -> None:
    asking = [toy_pieces.row(number, "gone") for number in range(60)]
    plain = [toy_pieces.row(number, "complete") for number in range(60, 120)]
    for row in plain:
        row["task"] = "strategyqa"
    assert failing(judged(asking + plain, none)) == {BY_TASK}
    for row in plain[:20]:
        row["task"] = "hotpotqa"
    result = judged(asking + plain, none)
    assert failing(result) == set() and values(result)[BY_TASK] == pytest.approx(2 / 3)
    assert failing(judged(asking[:20] + plain[-20:], none)) == set(), "few rows say nothing"


def silent(row: Row) -> None:
    row["user_replies"]["gives"] = "Just as I said."


DAMAGES: dict[str, tuple[Callable[[Row], object], Callable[[Row], object], Fault]] = {
    "the withheld title listed": (gone, list_the_title, Fault.REACHED),
    "the withheld fact quoted": (gone, quote_the_fact, Fault.DETERMINED),
    "a reply that says nothing": (gone, silent, Fault.UNSETTLED),
    "a needing row marked as complete": (
        gone,
        lambda row: row.update(needs_clarification=False, slot=None),
        Fault.UNDETERMINED,
    ),
    "a wrong gold answer": (complete, lambda row: row.update(answer="Ulwin"), Fault.UNDETERMINED),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_one_damaged_row_fails_and_is_listed(name: str) -> None:
    wanted, do, fault = DAMAGES[name]
    rows = toy_pieces.rows()
    damaged = first(rows, wanted)
    do(damaged)
    result = judged(rows)
    assert named(fault) in failing(result)
    found = next(offender for offender in result.offenders if offender["reason"] == fault)
    assert (found["id"], found["file"]) == (damaged["id"], "pool")
    assert found["found"] != found["expected"]
    assert all(check.advice for check in result.failures)


def test_a_number_in_words_is_found_in_the_evidence_that_the_prompt_quotes() -> None:
    row = toy_pieces.row(0, "gone")
    row["posed"]["quoted"] = ["It has twelve doors."]
    row["messages"][1]["content"] += " It has twelve doors."
    row["slot"].update(value="12", vague="some")
    row["user_replies"]["gives"] = "It is 12."
    assert named(Fault.REACHED) in failing(judged([row], none))


@pytest.mark.parametrize(("value", "gives"), [("2", "I only remember 127 euros."), ("Ida", "Idaho, I think.")])
def test_a_reply_that_holds_the_value_as_a_part_of_something_else_settles_nothing(value: str, gives: str) -> None:
    row = toy_pieces.row(0, "gone")
    row["slot"].update(value=value)
    row["user_replies"]["gives"] = gives
    assert named(Fault.UNSETTLED) in failing(judged([row], none))


@pytest.mark.parametrize("do", [list_the_title, quote_the_fact, silent])
def test_without_a_solver_the_texts_that_can_be_reached_are_searched(do: Callable[[Row], object]) -> None:
    rows = [row for row in toy_pieces.rows() if not needing(row, "ambiguous")]
    do(first(rows, gone))
    result = judged(rows, none)
    assert failing(result) == {named(Fault.UNSETTLED if do is silent else Fault.REACHED)}


def test_a_small_file_at_fault_is_not_hidden_by_a_large_one() -> None:
    shadow = [toy_pieces.row(number, "gone") for number in range(100, 104)]
    list_the_title(shadow[0])
    many = [toy_pieces.row(number, "gone") for number in range(1000)]
    result = judged(many, none, shadow=toy_pieces.frame(shadow))
    assert values(result)[named(Fault.REACHED)] == 0.25


@pytest.mark.parametrize(
    ("value", "told", "found"),
    [
        ("12", "It has 12.0 doors.", True),
        ("12", "It has 112 doors.", False),
        ("12", "It has twelve doors.", True),
        ("220", "It has two hundred and twenty doors.", True),
        ("2000", "It has two thousand doors.", True),
        ("$1,200", "It cost 1200 coins.", True),
        ("12", "See Story 12.", False),
    ],
)
def test_a_number_is_found_as_the_same_quantity_but_not_in_a_title(value: str, told: str, found: bool) -> None:
    row = toy_pieces.row(0, "gone")
    row["passages"] = [{"title": "Story 12", "text": f"{told} It has some windows."}]
    row["messages"][1]["content"] = f"Read Story 12. {row['posed']['ask'].replace('Case 0: ', '')}"
    row["slot"].update(value=value, vague="some")
    row["user_replies"]["gives"] = f"It is {value}."
    assert (named(Fault.REACHED) in failing(judged([row], none))) is found


def test_the_reader_without_asking_fails_where_the_texts_give_the_answer_away() -> None:
    """Every row withholds the name of a book that the reader can tell from the town, so it is right every time."""
    rows = []
    for number in range(40):
        row = toy_pieces.row(number, "gone")
        writer, book, town = (f"{stem}{chr(97 + number // 26)}{chr(97 + number % 26)}" for stem in ("W", "B", "T"))
        row["posed"]["ask"] = f"Who wrote the book in question of {town}?"
        row["messages"][1]["content"] = f"Read {book}. {row['posed']['ask']}"
        row["passages"] = [{"title": book, "text": f"This book is kept in {town}. It was written by {writer}."}]
        row["slot"].update(value="Nobook", where="ask")
        row["user_replies"]["gives"] = "It is Nobook."
        rows.append({**row, "answer": writer})
    result = judged(rows, none)
    assert failing(result) == {READER}
    assert values(result)["right without asking, reader of all texts, share of 40 prompts[hotpotqa]"] == 1.0


def test_dialogues_that_are_right_without_asking_fail_above_chance_and_not_at_it() -> None:
    ambiguous = [toy_pieces.row(number, "ambiguous") for number in range(40)]
    for row in ambiguous:
        row["final"] = "Prahule"
    assert judged(ambiguous).status is Status.PASSED  # half of them, as by guessing
    for row in ambiguous:
        row["final"] = row["answer"]
    assert RECORDED in failing(judged(ambiguous))


@pytest.mark.parametrize("twice", [False, True])
def test_yes_or_no_that_the_form_of_the_question_gives_away_is_found(twice: bool) -> None:
    """Not by a question that is posed twice: it has its own answer, and a policy meets it once."""
    rows = []
    for number in range(60):
        row = toy_pieces.row(number, "gone")
        form = ("Is somebody of Gruzel older", "Was somebody of Gruzel taller")[number % 2]
        if twice:
            form, row["source_id"] = f"Was somebody{'s son' * (number // 2)} taller", f"embedded/toy/{number // 2}"
        row["posed"]["ask"] = f"{form} than Number{number}?"
        row["messages"][1]["content"] = row["posed"]["ask"]
        answer = ("yes", "no")[number // 2 % 2 if twice else number % 2]
        rows.append({**row, "task": "strategyqa", "answer": answer, "final": "yes"})
    result = judged(rows, none)
    assert failing(result) == (set() if twice else {READER.replace("hotpotqa", "strategyqa")})


def test_a_solver_sees_nothing_but_what_the_policy_sees() -> None:
    row = cast(records.Row, toy_pieces.row(0, "gone"))
    reach = closure(row)
    seen = as_seen(row, reach)
    assert row["answer"] not in str(seen)
    assert "Ulwin" not in str(seen)  # on a page that cannot be reached
    assert as_seen(row, closure(row, f"It is {row['answer']}."))["slot"] == row["slot"]


def test_rows_of_which_none_is_looked_at_are_no_pass() -> None:
    untouched = toy_pieces.row(0, "gone") | {"needs_clarification": False, "slot": None, "user_replies": None}
    assert judged([untouched], none).status is Status.NOT_APPLICABLE
    unasked = toy_pieces.row(0, "gone") | {"slot": None, "user_replies": None}
    assert failing(judged([unasked], none)) == {"rows looked at", "needing rows looked at[hotpotqa]"}


def test_no_rows_fail() -> None:
    assert failing(judged([])) == {"rows looked at"}
