"""A question that leaves a piece out which another sentence states: it only sounds incomplete."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from rc1_lib.pool.as_asked import as_asked, pages_of
from rc1_lib.pool.as_worded import as_worded
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.prompting import statement
from rc1_lib.pool.templates import Pack, load_pack
from rc1_lib.records import BUCKETS, Passage, Question, Row, Slot, Step
from rc1_lib.run import Run

PAGES = (Passage("Brill", "Brill lifts 40 stones."), Passage("Anvil", "The Anvil weighs 50 stones."))
NAME = Question(
    id="own/name", task="strategyqa", source="own", lang="en", ask="Could Brill lift the Anvil?",
    support=tuple(page.text for page in PAGES), passages=PAGES,
    steps=tuple(Step("wiki", page.title, page.text) for page in PAGES), answer="no",
    slot=Slot("ask", "the Anvil", "a certain one", "which one is meant by 'a certain one'", hides=("Anvil",)),
)  # fmt: skip
KEPT_BACK = replace(NAME, id="own/name3")
"""One of the questions whose evidence is kept back although the piece is stated."""
STORY = Passage("Story 1", "Ann has 3 boxes. Each box holds 12 pens.")
NUMBER = Question(
    id="own/number", task="gsm8k", source="own", lang="en", ask="How many does Ann have in all?",
    support=("Ann has 3 boxes.", "Each box holds 12 pens."), passages=(STORY,),
    steps=(Step("wiki", STORY.title, STORY.text), Step("calc", "3*12", "36")), answer="36",
    slot=Slot("story", "12", "some", "how many pens"),
)  # fmt: skip
Written = Callable[[Question, float], list[Row]]


@pytest.fixture(scope="module")
def pack(built: Run) -> Pack:
    return load_pack(built.workspace.find(built.config.pool.templates_dir))


@pytest.fixture
def written(built: Run, pack: Pack) -> Written:
    def rows(question: Question, withhold: float) -> list[Row]:
        pool = built.config.pool
        recipes = {name: recipe.model_copy(update={"withhold": withhold}) for name, recipe in pool.recipes.items()}
        own = pool.model_copy(update={"recipes": recipes})
        found = [
            write_row(PlannedRow(f"pool-{n}", "pool", question, 0), name, own, pack)
            for n in range(4)
            for name in BUCKETS
        ]
        return [row for row in found if row is not None]

    return rows


def faults(row: Row, question: Question, pack: Pack) -> list[str]:
    return [
        one.where
        for one in (*as_asked(row, question, pages_of({("own", question.id): question})), *as_worded(row, pack))
    ]


@pytest.mark.parametrize("question", [NAME, KEPT_BACK, NUMBER], ids=["name", "kept back", "number"])
def test_what_one_sentence_leaves_out_another_states(question: Question, written: Written, pack: Pack) -> None:
    assert question.slot is not None
    stated, gone = written(question, 0.0), written(question, 1.0)
    assert len(stated) == len(gone) == 12
    sentence = statement(question.slot, question.id)
    for row in (*stated, *gone):
        prompt = str(row["messages"][1]["content"])
        assert faults(row, question, pack) == []
        assert (sentence in prompt) is not row["needs_clarification"]
        if row["needs_clarification"] or question is KEPT_BACK:
            assert not set(question.slot.hides) & {*row["posed"]["listed"]}
            assert question is NUMBER or PAGES[1].text not in prompt
        assert question.slot.vague in (prompt if question is not NUMBER else " ".join(row["support"]))
    assert not any(row["needs_clarification"] or row["slot"] for row in stated)
    assert any(row["solved"] and not row["asked"] for row in stated), "nothing is missing"


def test_row_whose_message_does_not_state_the_piece_is_inconsistent(written: Written, pack: Pack) -> None:
    row = copy.deepcopy(written(NAME, 0.0)[0])
    assert NAME.slot is not None
    sentence = statement(NAME.slot, NAME.id)
    row["posed"]["quoted"].remove(sentence)
    row["messages"][1]["content"] = (
        str(row["messages"][1]["content"]).replace(f"{sentence} ", "").replace(f" {sentence}", "")
    )
    assert faults(row, NAME, pack) == ["posed.quoted"]


def test_statement_in_the_words_of_the_question_is_not_made(written: Written) -> None:
    """ "How many pens: 12." next to "How many pens does Ann have?" would read as the answer."""
    asked = replace(NUMBER, ask="How many pens does Ann have?")
    assert all(row["support"] == list(asked.support) for row in written(asked, 0.0))
