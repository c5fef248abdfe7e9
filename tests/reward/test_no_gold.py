"""No dimension reads the gold answer: all columns except the messages can be shuffled."""

from __future__ import annotations

import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.judge.rubric import DIMENSIONS, score
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.rows.chat import add_counts
from rc1_lib.rows.frame import ROW_COLUMNS

GOLD = [name for name in ROW_COLUMNS if name not in {"id", "messages"}]
"""All columns of a row except its dialogue."""


def judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute every dimension and count of every row, as the pipeline does: from the frame and from its rows."""
    scores = pl.DataFrame([score(row["messages"]) for row in rows.iter_rows(named=True)])
    return add_counts(add_rules(rows, RULES)).hstack(scores)


@pytest.mark.parametrize(("name", "every"), [("pool", 5), ("shadow", 1)], ids=["pool", "shadow"])
def test_shuffling_all_gold_columns_changes_no_dimension(evidence: Evidence, name: str, every: int) -> None:
    rows = evidence.rows(name).gather_every(every)
    gold = rows.select(GOLD).sample(fraction=1.0, shuffle=True, seed=7)
    shuffled = rows.select("id", "messages").hstack(gold)
    for column in ("answer", "needs_clarification", "solved", "slot", "final", "question", "support"):
        assert not shuffled[column].equals(rows[column]), f"{column} was not shuffled"
    names = [*DIMENSIONS, *RULES, "turns", "tool_hops", "clarifications"]
    assert judged(shuffled).select(names).equals(judged(rows).select(names))


def test_the_dimensions_need_only_the_messages(evidence: Evidence) -> None:
    rows = evidence.rows("shadow")
    alone = judged(rows.select("messages"))
    assert alone.select([*DIMENSIONS, *RULES]).equals(judged(rows).select([*DIMENSIONS, *RULES]))


def test_a_changed_answer_in_a_message_changes_the_dimensions(evidence: Evidence) -> None:
    """The counter-check: a change of the messages changes the dimensions."""
    rows = evidence.rows("shadow")
    messages = rows["messages"].to_list()
    before = [score(one) for one in messages]
    after = [score([*one[:-1], {**one[-1], "content": "Answer: Xylophone"}]) for one in messages]
    assert before != after
