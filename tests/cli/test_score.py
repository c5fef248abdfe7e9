"""`rc1 score` with the loopback test double: files, table and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.judge.bench import dialogues
from tests.judge_server import Behaviour, FaultKind, JudgeServer, running

from .conftest import Rc1, judge_at, records, widest_table_line

SCORES, UNSTABLE = "reports/rc1/scores.jsonl", "reports/rc1/unstable_samples.jsonl"


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Three rows with ids, one without, and the first again."""
    asked = dialogues(4)
    named = [{"id": f"row-{place}", "task": "gsm8k", "messages": one} for place, one in enumerate(asked[:3])]
    return write(tmp_path / "rows.jsonl", [*named, {"messages": asked[3]}, {"id": 5, "messages": asked[0]}])


def test_scores_are_written_per_row_and_summarised(rc1: Rc1, server: JudgeServer, rows: Path, tmp_path: Path) -> None:
    done = rc1("score", "--workspace", tmp_path / "w", "--in", rows, *judge_at(server))
    assert done.code == 0
    assert "5 of 5 dialogues scored (100.0 %), 3 samples each, answered by rc1-test-double-1" in done.out
    assert "12 calls, rps " in done.out
    assert widest_table_line(done.out) <= 100
    assert "judge: 12/12" in done.err
    scores = records(tmp_path / "w" / SCORES)
    assert [one["id"] for one in scores] == ["row-0", "row-1", "row-2", "line 4", "5"]
    assert [one["line"] for one in scores] == [1, 2, 3, 4, 5]
    assert scores[0]["medians"] == scores[4]["medians"]
    for one in scores:
        assert (one["scored"], one["complete"], one["samples"], one["reason"]) == (True, True, 3, "")
        assert one["models"] == ["rc1-test-double-1"]
        assert len(one["medians"]) == len(one["variances"]) == 7
        assert all(0 <= value <= 1 for value in one["medians"].values())
    assert not (tmp_path / "w" / UNSTABLE).exists()
    summary = json.loads((tmp_path / "w/reports/rc1/scores.summary.json").read_text())
    assert (summary["complete"], summary["calls"]) == (True, 12)
    mean = sum(one["medians"]["answered"] for one in scores) / 5
    assert summary["dimensions"]["answered"]["mean_of_medians"] == pytest.approx(mean)
    assert f"{mean:.4f}" in done.out
    assert server.stats().requests == 12


def test_score_reads_the_shadow_set_by_default_and_names_a_missing_one(
    rc1: Rc1, server: JudgeServer, workspace: Path, tmp_path: Path
) -> None:
    done = rc1("score", "--workspace", workspace, *judge_at(server), "--n", "2", "--json")
    assert (done.code, json.loads(done.out)["scored"]) == (0, 2)
    assert records(workspace / SCORES)[0]["id"].startswith("shadow-")
    nothing = rc1("score", "--workspace", tmp_path / "w", *judge_at(server))
    assert nothing.code == 2
    assert "there is no shadow set yet; run `rc1 build-pool`" in nothing.err


def test_damaged_rows_are_reported_by_line_before_any_call(rc1: Rc1, server: JudgeServer, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    asked = dialogues(1)[0]
    lines = [
        json.dumps({"messages": asked}),
        "{nope",
        "",
        json.dumps([1]),
        json.dumps({"id": "x"}),
        json.dumps({"messages": []}),
        json.dumps({"messages": asked[:1]}),
        json.dumps({"messages": [{"role": "assistant", "content": 7}]}),
        json.dumps({"messages": [{"content": "a"}, *asked]}),
        json.dumps({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "calc"}}]}]}),
    ]
    path.write_text("\n".join(lines))
    done = rc1("score", "--workspace", tmp_path / "w", "--in", path, *judge_at(server))
    assert done.code == 2
    for error in (
        "line 2: not valid JSON",
        "line 4: is a JSON list, expected an object",
        "line 5: has no 'messages'",
        "line 6: 'messages' is not a list",
        "line 7: no message is the assistant's",
        "line 8: message 1 has a int as its content",
        "line 9: message 1 has no role",
        "line 10: message 1 has a tool call whose function lacks",
        "Nothing was asked",
    ):
        assert error in done.err
    assert "line 1:" not in done.err
    assert server.stats().requests == 0
    assert not (tmp_path / "w/data").exists()
    assert rc1("score", "--workspace", tmp_path / "w", "--in", path, "--n", "1", *judge_at(server)).code == 0


def test_low_coverage_fails_and_marks_the_files_incomplete(rc1: Rc1, rows: Path, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.WRONG_SCHEMA: 0.9})) as server:
        done = rc1("score", "--workspace", tmp_path / "w", "--in", rows, *judge_at(server))
    assert done.code == 2
    assert "INCOMPLETE" in done.out
    assert "expected at least 98%" in done.err
    assert "scores.jsonl is marked incomplete" in done.err
    scores = records(tmp_path / "w" / SCORES)
    assert {one["complete"] for one in scores} == {False}
    unscored = [one for one in scores if not one["scored"]]
    assert unscored
    for one in unscored:
        assert one["reason"].startswith("the reply")
        assert set(one["medians"].values()) == set(one["variances"].values()) == {None}
    summary = json.loads((tmp_path / "w/reports/rc1/scores.summary.json").read_text())
    assert summary["complete"] is False
    assert "expected at least 98%" in summary["incomplete"]


def test_high_variance_samples_are_written_and_removed_when_there_are_none(
    rc1: Rc1, server: JudgeServer, rows: Path, tmp_path: Path
) -> None:
    flags = ("--workspace", tmp_path / "w", "--in", rows, *judge_at(server))
    done = rc1("score", *flags, "--set", "gates.stability.max_variance=0.0000001")
    assert done.code == 0
    assert "unstable samples: " in done.out
    unstable = records(tmp_path / "w" / UNSTABLE)
    assert [one["ids"] for one in unstable] == [["row-0", "5"], ["row-1"], ["row-2"], ["line 4"]]
    assert all(sorted(reply["sample"] for reply in one["replies"]) == [0, 1, 2] for one in unstable)
    assert all("reason" in json.loads(reply["text"]) for reply in unstable[0]["replies"])
    again = rc1("score", *flags)
    assert "0 unstable" in again.out
    assert not (tmp_path / "w" / UNSTABLE).exists()
