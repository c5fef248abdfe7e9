"""Difficulty features against hand-computed values, in English and Chinese."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from rc1_lib.difficulty.features import measure
from rc1_lib.rows.frame import ROW_COLUMNS


def call(name: str, **arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def row(
    user: str, support: list[str], *steps: dict[str, Any], final: str = "Answer: 1", needs: bool = False
) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Help."}, {"role": "user", "content": user}]
    for step in steps:
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [step]},
            {"role": "tool", "content": "nothing", "tool_call_id": "c", "name": step["function"]["name"]},
        ]
    messages.append({"role": "assistant", "content": final})
    return {"id": "x", "task": "gsm8k", "messages": messages, "support": support, "needs_clarification": needs}


def features(record: dict[str, Any]) -> dict[str, Any]:
    frame = pl.DataFrame([record], schema=ROW_COLUMNS)
    return measure(frame).row(0, named=True)


def test_turns_count_assistant_messages_and_hops_exclude_ask_user() -> None:
    found = features(
        row(
            "Why?",
            ["Because."],
            call("wiki", title="A"),
            call("ask_user", question="?"),
            call("calc", expression="1+1"),
        )
    )
    assert (found["turns"], found["tool_hops"]) == (4, 2)


def test_operators_and_comparison_words_are_counted() -> None:
    found = features(
        row(
            "Which is older, and what is the difference?",
            ["s"],
            call("calc", expression="12*3-(-4)/2"),
            call("calc", expression="7>5"),
        )
    )
    assert found["ops_numeric"] == 2 + 3 + 1


def test_entities_are_distinct_names_in_user_and_tool_text() -> None:
    assert features(row("Did Harn of Velmo meet Orla Teck, or did Harn of Velmo not?", ["s"]))["entities"] == 2


def test_chinese_names_places_and_titles_are_entities() -> None:
    assert features(row("请问王小明住在青石镇吗？他写了《山中书》。", ["s"]))["entities"] == 3


def test_connector_density_is_per_100_words() -> None:
    found = features(
        row("one two three because four five", ["s"], final="so it is six seven eight nine ten eleven twelve")
    )
    assert found["connector_density"] == pytest.approx(100 * 2 / 16)


def test_chinese_connectors_and_pronouns_are_counted() -> None:
    found = features(row("因为下雨，所以他没有去。", ["s"], final="好"))
    assert found["connector_density"] == pytest.approx(100 * 2 / 11)
    assert found["coref_pronouns"] == 1


def test_clue_overlap_is_the_jaccard_similarity_of_3grams() -> None:
    # Prompt: a b c d e -> abc bcd cde; support: b c d e f -> bcd cde def; shared 2 of 4.
    assert features(row("a b c d e", ["b c d e f"]))["clue_overlap"] == pytest.approx(0.5)


def test_ambiguity_flags_name_the_vague_parts() -> None:
    found = features(row("Some time back then, did a certain potter sell it?", ["s"], needs=True))
    assert {"under-specified", "vague-reference", "vague-time"} <= set(found["ambiguity_flags"])
