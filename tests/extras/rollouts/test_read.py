"""Rollouts of six forms become one frame."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.extras.rollouts.read import dialogues, read_rollouts

USER = {"role": "user", "content": "What is 3 + 4?"}
CALL: dict[str, Any] = {
    "id": "c0",
    "type": "function",
    "function": {"name": "calc", "arguments": '{"expression":"3+4"}'},
}
SAID: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Adding.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c0", "content": "7"},
    {"role": "assistant", "content": "Answer: 7"},
]
FLAT = [{**SAID[0], "tool_calls": [{"id": "c0", "type": "function", **CALL["function"]}]}, *SAID[1:]]
WRITTEN = [{**SAID[0], "tool_calls": [json.dumps(CALL)]}, *SAID[1:]]
"""Calls as verifiers writes them since 0.4, and as it wrote them before."""
NODES = [
    {"message": one, "parent": at - 1 if at else None, "sampled": at in (1, 3)} for at, one in enumerate([USER, *FLAT])
]
LOST = {"message": {"role": "assistant", "content": "lost"}, "parent": 0, "sampled": True}
TRACE = {
    "nodes": [*NODES[:2], LOST, *({**node, "parent": parent} for node, parent in zip(NODES[2:], (1, 3), strict=True))],
    "rewards": {"right": {"score": 1.0, "weight": 0.5}, "broken": None},
    "metrics": {"solved": 1.0},
    "calls": [{"finish_reason": "tool_calls"}, {"finish_reason": "length"}],
}
CHAT = {
    "tau-bench": {"traj": [USER, *SAID], "task_id": 3, "reward": 0.5, "info": {"reward_info": None}},
    "verifiers traces": {"traces": [TRACE], "task": {"data": {"idx": 3, "answer": "7"}}},
    "verifiers": {"prompt": [USER], "completion": WRITTEN, "example_id": 3, "reward": 0.5, "is_truncated": True},
    "OpenAI": {"messages": [USER, *SAID], "reward": 0.5, "finish_reason": "length"},
}
"""The same dialogue, paid 0.5 and ended by a limit."""
TEXT = {
    "verl": {"input": "What is 3 + 4?", "output": "Answer: 7", "gts": ["7"], "score": 0.5, "step": 2, "acc": True},
    "TRL": {"prompt": "What is 3 + 4?", "completion": "Answer: 7", "answer": "7", "reward": 0.5, "step": 2, "acc": 1},
}
Write = Callable[[Sequence[dict[str, Any]]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(records: Sequence[dict[str, Any]]) -> Path:
        path = tmp_path / "rollouts.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize("form", CHAT)
def test_dialogue_reads_alike_in_every_chat_form(write: Write, form: str) -> None:
    found, frame = read_rollouts(write([CHAT[form]]))
    row = frame.row(0, named=True)
    assert (found, row["question"], row["final"]) == (form, "What is 3 + 4?", "Answer: 7")
    assert row["written"].splitlines() == ["Adding.", "Answer: 7", 'calc {"expression":"3+4"}']
    assert (row["reward"], row["cut"], row["line"]) == (0.5, True, 1)
    assert [one["role"] for one in dialogues(frame)[0]] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("form", TEXT)
def test_text_and_the_numbers_next_to_it_are_read(write: Write, form: str) -> None:
    found, frame = read_rollouts(write([TEXT[form]]))
    row = frame.row(0, named=True)
    assert (found, row["final"], row["gold"], row["reward"], row["truth"]) == (form, "Answer: 7", "7", 0.5, 1.0)
    assert row["group"].startswith("2/") and row["cut"] is None


def test_table_of_trl_pays_the_sum_of_its_functions_and_null_without_any(tmp_path: Path) -> None:
    path = tmp_path / "completions_00001.parquet"
    none = float("nan")
    pl.DataFrame({
        "step": [1, 1, 1], "prompt": [[USER]] * 3, "completion": [[SAID[2]]] * 3, "style": [0.25, none, none],
        "match": [1.0, 0.0, none], "advantage": [0.7, -0.7, none],
    }).write_parquet(path)  # fmt: skip
    form, frame = read_rollouts(path)
    assert form == "TRL, reward: match + style"
    assert (frame["reward"].to_list(), frame["truth"].null_count()) == ([1.25, 0.0, None], 3)
    logged = pl.read_parquet(path).with_columns(answer=pl.lit(42), truncated=pl.lit(value=True))
    logged.write_parquet(path)  # what a reward function logs is in the same table
    assert read_rollouts(path)[1]["reward"].to_list() == [1.25, 0.0, None]
    assert read_rollouts(path, reward="match", truth="style")[1]["truth"].to_list() == [0.25, None, None]


def test_reward_is_not_compared_with_itself(tmp_path: Path) -> None:
    path = tmp_path / "completions_00001.parquet"
    alone = {"step": [1], "prompt": [[USER]], "completion": [[SAID[2]]], "accuracy": [1.0], "advantage": [0.0]}
    pl.DataFrame(alone).write_parquet(path)
    form, frame = read_rollouts(path)
    assert (form, frame["reward"][0], frame["truth"][0]) == ("TRL, reward: accuracy", 1.0, None)


def test_rollout_that_ends_in_a_call_or_says_nothing_has_no_final_answer(write: Write) -> None:
    open_call = {"prompt": [USER], "completion": SAID[:1], "example_id": 1, "reward": 0.0}
    assert read_rollouts(write([open_call, {**open_call, "completion": None}]))[1]["final"].to_list() == ["", ""]
    assert read_rollouts(write([{"traces": [{"nodes": []}]}]))[1]["final"].to_list() == [""]


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "no records"),
        ([{"question": "?"}], "question"),
        ([CHAT["OpenAI"], {"reward": 1.0}], "line 2"),
        ([{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": 3}]}], "line 1"),
        ([{"traces": []}], "line 1"),
        ([{"prompt": None, "completion": "x"}], "line 1"),
        ([CHAT["OpenAI"], {**CHAT["OpenAI"], "reward": "0.5"}], "line 2.*reward"),
        ([CHAT["OpenAI"], {"messages": [{"role": "user", "content": "\ud800"}]}], "line 2"),
        ([CHAT["OpenAI"], {**CHAT["OpenAI"], "\ud800": 1}], "line 2.*half a character"),
        ([{"traces": [{"nodes": [{**NODES[0], "parent": -1}, NODES[1]]}]}], "line 1.*parent"),
        ([{"traces": [{"nodes": [{**NODES[0], "parent": 0}]}]}], "line 1.*parent"),
        ([{**CHAT["tau-bench"], "info": {"task": {"instruction": ["a"]}}}], "line 1.*question"),
    ],
)
def test_what_is_no_rollout_is_refused_by_line(write: Write, records: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(RC1Error, match=words):
        read_rollouts(write(records))


def test_samples_of_a_judge_may_mix_whole_numbers_and_others(write: Write) -> None:
    assert read_rollouts(write([{**CHAT["OpenAI"], "judge_scores": [4, 4.5]}]))[1]["samples"][0].to_list() == [4.0, 4.5]


def test_reward_that_no_float_holds_is_null_and_its_key_stays(write: Write) -> None:
    lost = [{**CHAT["OpenAI"], "reward": one} for one in (float("nan"), None, 10**400)]
    frame = read_rollouts(write(lost))[1]
    assert frame["reward"].null_count() == frame["of.reward"].null_count() == 3


def test_number_that_no_record_has_is_refused_with_those_that_there_are(write: Write) -> None:
    with pytest.raises(RC1Error, match=r"--truth-key right: .*reward"):
        read_rollouts(write([CHAT["OpenAI"]]), truth="right")
