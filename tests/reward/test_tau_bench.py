"""Real dialogues of tau-bench: an airline service with a dozen tools, users who answer, and null contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration.judge_agreement import judge_agreement
from rc1_lib.judge.score_files import read_dialogues
from rc1_lib.labels.label_file import read_labels
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.rows.chat import add_counts
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.run import open_run

# Counted by reading the rows (numbered from 0) message by message: (messages of the assistant; tool calls; messages of
# the assistant without a call that a user's message follows). Rows 7 and 22 have a call next to a text; row 60 ends
# with a tool's result; rows 1 and 194 have no call; row 0 calls two tools twice.
BY_HAND = {
    0: (15, 8, 7),
    1: (5, 0, 5),
    7: (12, 5, 7),
    22: (11, 5, 6),
    60: (4, 2, 2),
    194: (2, 0, 2),
}


@pytest.fixture(scope="module")
def dialogues(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """The 200 dialogues, as the JSONL reader returns them."""
    source = json.loads((shared_data / "tau_bench" / "gpt-4o-airline.json").read_bytes())
    path = tmp_path_factory.mktemp("tau_bench") / "airline.jsonl"
    rows = ({"id": f"airline-{number}", "messages": row["traj"]} for number, row in enumerate(source))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = read_dialogues(path)
    assert [one.id for one in found] == [f"airline-{number}" for number in range(200)]
    return [[dict(message) for message in one.messages] for one in found]


@pytest.fixture(scope="module")
def frame(dialogues: list[list[dict[str, Any]]]) -> pl.DataFrame:
    """The dialogues as a column."""
    return pl.DataFrame({"messages": dialogues}, schema={"messages": ROW_COLUMNS["messages"]})


def test_the_counts_equal_those_counted_by_hand(frame: pl.DataFrame) -> None:
    counts = add_counts(frame).select("turns", "tool_hops", "clarifications").rows()
    assert {number: counts[number] for number in BY_HAND} == BY_HAND


def test_the_rules_score_every_dialogue(frame: pl.DataFrame) -> None:
    for name, values in add_rules(frame, RULES).select(list(RULES)).to_dict().items():
        assert values.null_count() == 0, name
        assert values.is_between(0.0, 1.0).all(), name


def test_the_rubric_agrees_no_better_than_chance_and_fails_the_gate(
    dialogues: list[list[dict[str, Any]]], shared_data: Path, tmp_path: Path
) -> None:
    """The label is the benchmark's verdict on the final state; trials of one task are one group."""
    source = json.loads((shared_data / "tau_bench" / "gpt-4o-airline.json").read_bytes())
    rows = [
        {"messages": messages, "label": "good" if row["reward"] else "bad", "group": row["task_id"]}
        for messages, row in zip(dialogues, source, strict=True)
    ]
    path = tmp_path / "tau.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = open_run(profile="local", workspace=tmp_path / "w", overrides=["gates.shared.resamples=200"])
    found = judge_agreement(run, read_labels(path))
    assert (found.body["labels"]["dialogues"], found.body["labels"]["groups"]) == (200, 50)
    figures = found.body["agreement"]
    assert figures["agreement"]["value"] > 0.5 > abs(figures["kappa"]["value"]) + 0.4
    assert {check.name for check in found.gate.failures} == {"kappa with people"}
