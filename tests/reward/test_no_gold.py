"""No dimension can see the gold answer: whatever is known of a row beside its messages may change places."""

from __future__ import annotations

import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.judge.rubric import DIMENSIONS, score
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.rows.chat import add_counts
from rc1_lib.rows.frame import ROW_COLUMNS

GOLD = [name for name in ROW_COLUMNS if name not in {"id", "messages"}]
"""All that the file says of a dialogue beside the dialogue itself."""


def judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Every dimension and count of every row, as the pipeline gets them: from the frame and from its rows."""
    scores = pl.DataFrame([dict(score(row["messages"]).scores) for row in rows.iter_rows(named=True)])
    return add_counts(add_rules(rows, RULES)).hstack(scores)


@pytest.mark.parametrize(("name", "every"), [("pool", 5), ("shadow", 1)], ids=["pool", "shadow"])
def test_every_dimension_stays_the_same_when_all_gold_columns_are_shuffled(
    evidence: Evidence, name: str, every: int
) -> None:
    rows = evidence.rows(name).gather_every(every)
    gold = rows.select(GOLD).sample(fraction=1.0, shuffle=True, seed=7)
    shuffled = rows.select("id", "messages").hstack(gold)
    for column in ("answer", "needs_clarification", "solved", "slot", "final", "question", "support"):
        assert not shuffled[column].equals(rows[column]), f"{column} was not shuffled"
    seen = [*DIMENSIONS, *RULES, "turns", "tool_hops", "clarifications"]
    assert judged(shuffled).select(seen).equals(judged(rows).select(seen))


def test_the_dimensions_are_read_from_a_frame_that_holds_nothing_else(evidence: Evidence) -> None:
    rows = evidence.rows("shadow")
    alone = judged(rows.select("messages"))
    assert alone.select([*DIMENSIONS, *RULES]).equals(judged(rows).select([*DIMENSIONS, *RULES]))


def test_the_gold_answer_in_a_message_would_be_seen(evidence: Evidence) -> None:
    """The counter-check: what stands in the messages does change the dimensions."""
    rows = evidence.rows("shadow")
    messages = rows["messages"].to_list()
    before = [score(one).scores for one in messages]
    after = [score([*one[:-1], {**one[-1], "content": "Answer: Xylophone"}]).scores for one in messages]
    assert before != after
