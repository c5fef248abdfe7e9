"""The local judge sees the dialogue and nothing else."""

from __future__ import annotations

import pytest

from rc1_lib.preflight.evidence import Evidence
from rc1_lib.scoring import rubric


def test_all_dimensions_of_all_shadow_rows_lie_between_zero_and_one(evidence: Evidence) -> None:
    for messages in evidence.rows("shadow")["messages"].to_list():
        scored = rubric.score(messages)
        assert set(scored.scores) == set(rubric.DIMENSIONS)
        assert all(0.0 <= value <= 1.0 for value in scored.scores.values())
        assert scored.latency_ms > 0
        assert scored.billable is False


def test_a_made_up_answer_is_less_grounded_than_one_that_a_page_holds() -> None:
    page = {"role": "tool", "content": "The mill stands in Velmo.", "tool_calls": None}
    ask = {"role": "user", "content": "Where is the mill?", "tool_calls": None}
    scores = [
        rubric.score([ask, page, {"role": "assistant", "content": f"Answer: {answer}"}]).scores["grounded"]
        for answer in ("Velmo", "Tarn")
    ]
    assert scores == [1.0, 0.0]


def test_a_malformed_call_and_a_missing_answer_are_marked_down() -> None:
    broken = {"id": "1", "type": "function", "function": {"name": "wiki", "arguments": "{title"}}
    scores = rubric.score(
        [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Hm.", "tool_calls": [broken]}]
    ).scores
    assert (scores["answered"], scores["well_formed"]) == (0.0, 0.0)


def test_a_dialogue_without_an_assistant_cannot_be_scored_and_is_not_given_zero() -> None:
    with pytest.raises(ValueError, match="nothing to judge"):
        rubric.score([{"role": "user", "content": "?"}])
