"""What a public question withholds is told by nothing that can be reached, and with the reply it can be solved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rc1_lib.pool.distractors import lend_pages
from rc1_lib.pool.prompting import take_out
from rc1_lib.records import Passage, Question
from rc1_lib.sources.local import load_local
from rc1_lib.task_specs.gsm8k_slot import number_slot
from rc1_lib.task_specs.quantities import as_quantity, figures, in_words
from rc1_lib.task_specs.reach import folded, reachable
from rc1_lib.task_specs.withheld_name import bare_name, gives_away, name_slot, names_it

ASK = "Who is mayor of the place where Brindle Tower stands?"
PAGES = {"Brindle Tower": "It stands in Quorn.", "Quorn": "Its mayor is Ida Voss.", "Pel": "Pel is a port."}


def withheld(ask: str = ASK, answer: str = "Ida Voss", **pages: str) -> tuple[tuple[str, ...] | None, str]:
    """The titles that are hidden, or None with the reason."""
    texts = {**PAGES, **{title.replace("_", " "): text for title, text in pages.items()}}
    passages = [Passage(title, text) for title, text in texts.items()]
    slot, why = name_slot(["Brindle Tower"], ask, passages, ["Brindle Tower", "Quorn"], answer)
    return (slot.hides if slot else None), why.removeprefix("nothing can be withheld: ")


def test_pages_that_name_it_tell_the_answer_or_lead_to_such_pages_are_hidden() -> None:
    assert withheld() == (("Brindle Tower", "Quorn"), "")
    hides, _ = withheld(Old_Tales="They speak of Brindle Tower.", Voss="Ida Voss was born here.", Map="See Old Tales.")
    assert hides == ("Brindle Tower", "Quorn", "Old Tales", "Voss", "Map")


@pytest.mark.parametrize(
    ("ask", "answer", "pages", "why"),
    [
        (ASK, "yes", {"Brindle_Tower": "It stands."}, "the name alone does not lead to the needed pages"),
        (f"Near Pel: {ASK}", "Ida Voss", {"Pel": "Pel has the Brindle."},
         "a page that can be reached gives it away"),
        (ASK.replace("stands", "stands, the old Brindle"), "Ida Voss", {}, "the question names it in other words too"),
        (f"Is it Ida Voss? {ASK}", "Ida Voss", {}, "the question names the answer"),
        ("Are Brindle Tower and Pel both high?", "no", {}, "the other names of the question may settle it alone"),
        ("Is Brindle Tower the Brindle Tower?", "no", {}, "no name stands in the question once, as a noun phrase"),
    ],
)  # fmt: skip
def test_a_name_that_something_gives_away_is_not_withheld(
    ask: str, answer: str, pages: dict[str, str], why: str
) -> None:
    if answer == "yes":
        pages = {**pages, "Quorn": "It lies by Brindle Tower."}
    assert withheld(ask, answer, **pages) == (None, why)


def test_names_are_found_as_whole_words_in_any_case_and_in_chinese_anywhere() -> None:
    assert names_it("Brindle Tower", "the BRINDLE  tower's")
    assert not names_it("Ros", "across")
    assert names_it("银鹿", "他去了银鹿塔。")
    assert gives_away("Kelly Clarkson (singer)", "It was sung by Clarkson.")
    assert bare_name("The Quran (book)") == "Quran"


def borrowed(shelf: dict[str, str]) -> set[str]:
    """The titles of the pages that the question borrows from another one with these pages."""
    slot, _ = name_slot(["Brindle Tower"], ASK, [Passage(*page) for page in PAGES.items()], list(PAGES)[:2], "Ida Voss")
    own = Question("own", "hotpotqa", "public", "en", ASK, (), tuple(Passage(*page) for page in PAGES.items()), (),
                   "Ida Voss", slot=slot)  # fmt: skip
    other = Question("other", "hotpotqa", "public", "en", "?", (), tuple(Passage(*p) for p in shelf.items()), (), "x")
    return {page.title for page in lend_pages([own], {"hotpotqa": [other]}, 1)[0].passages} - set(PAGES)


def test_no_page_is_borrowed_that_names_what_is_withheld_or_leads_to_it() -> None:
    assert borrowed({"Hills": "Brindle Tower is seen from here."}) == set()
    assert borrowed({"Hills": "The road ends in Quorn."}) == set()
    assert borrowed({"Hills": "Nothing is seen from here."}) == {"Hills"}


@pytest.mark.parametrize(
    ("story", "ask", "sums", "answer", "value"),
    [
        ("He has 12 cows and 5 goats.", "How many in all?", ["12+5"], "17", "12"),
        # Told a second time, in figures or in words.
        ("He has 12 cows and 5 goats, so a dozen cows.", "How many in all?", ["12+5"], "17", "5"),
        ("He has 12 cows and 5 goats.", "What do 12 cows and 5 goats eat?", ["12+5"], "17", None),
        # A later result is stated, so that the sums can be solved for the number.
        ("He has 12 cows and 5 goats. All 17 eat 3 cakes.", "How many cakes?", ["12+5", "17*3"], "51", "3"),
        ("He has 12 cows and 5 goats.", "Of all 17 animals, how many are there?", ["12+5"], "17", None),
        # Stated in another way, which the solution does not need.
        ("Of 20 cows 8 are red and 12 cows are old. Each has 3 bells.", "How many bells have the old?", ["12*3"], "36",
         "3"),
        # The answer does not depend on it.
        ("He has 12 cows and 5 goats. Each goat eats 4 cakes.", "How many cakes?", ["12+5", "5*4"], "20", "5"),
    ],
)  # fmt: skip
def test_a_number_that_can_be_derived_is_not_withheld(
    story: str, ask: str, sums: list[str], answer: str, value: str | None
) -> None:
    slot, why = number_slot(story, ask, sums, answer)
    assert (slot.value if slot else None) == value
    assert bool(why) is (slot is None)


@pytest.mark.parametrize(
    ("text", "found"), [("twenty-one", {"21"}), ("a dozen", {"12"}), ("Twice a week", {"2", "7"}), ("often", set())]
)
def test_number_words_are_read_as_quantities(text: str, found: set[str]) -> None:
    assert found <= in_words(text)
    assert bool(in_words(text)) is bool(found)


def posed(question: Question) -> tuple[str, dict[str, str]]:
    """What can be reached if the question is posed with all pages listed that its slot does not hide."""
    assert question.slot is not None
    reduced = take_out(question, question.slot)
    pages = {page.title: page.text for page in reduced.passages}
    listed = [title for title in pages if title not in question.slot.hides]
    return "\n".join([reduced.ask, *listed]), pages


def test_of_real_questions_nothing_that_is_withheld_can_be_reached(shared_data: Path) -> None:
    withheld, why = Counter[str](), Counter[str]()
    for task, loaded in load_local(shared_data, ["hotpotqa", "strategyqa", "gsm8k"], 0.1).items():
        for question in loaded.questions:
            why[question.kept] += question.slot is None
            if question.slot is None:
                continue
            withheld[task] += 1
            text, pages = posed(question)
            opened = reachable([text], pages)
            if question.slot.where == "story":
                told = "\n".join((question.ask, *(pages[title] for title in opened)))
                quantity = as_quantity(question.slot.value)
                assert quantity not in figures(told) and quantity not in in_words(told)
                continue
            name, texts = bare_name(question.slot.value), [text, *(pages[title] for title in opened)]
            assert not any(names_it(name, told) for told in texts)
            assert folded(name) not in {folded(title) for title in opened}
            needed = {step.argument for step in question.steps if step.tool == "wiki"}
            assert needed <= reachable([text, question.slot.value], pages)
    assert withheld["hotpotqa"] > 80 and withheld["strategyqa"] > 700 and withheld["gsm8k"] > 4500
    assert "" not in +why, "whoever cannot withhold anything says why"
