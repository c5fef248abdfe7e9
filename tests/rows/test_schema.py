"""Each way in which a row can be invalid raises an error that names the line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rc1_lib.environment.world import World
from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.rows import frame, schema
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.playable import is_playable, unplayable
from rc1_lib.rows.schema import check_rows
from rc1_lib.task_specs import answer_in

Row = dict[str, Any]


@pytest.fixture(scope="module")
def lines(evidence: Evidence) -> list[str]:
    rows = evidence.path("pool").read_text(encoding="utf-8").splitlines()
    asking = next(line for line in rows if json.loads(line)["asked"])
    calling = next(
        line
        for line, row in ((line, json.loads(line)) for line in rows)
        if not row["asked"] and not row["needs_clarification"] and "tool_calls" in line
    )
    return [asking, calling, *rows[100:103]]


def first_call(row: Row) -> Row:
    return next(message for message in row["messages"] if message.get("tool_calls"))["tool_calls"][0]["function"]


def first_calls(row: Row) -> list[Any]:
    return next(message for message in row["messages"] if message.get("tool_calls"))["tool_calls"]


def with_missing_information(row: Row) -> Row:
    """Make the row one with missing information, and return its user replies."""
    slot = {"where": "ask", "value": "39", "vague": "some", "wanted": "how many"}
    row.update(
        needs_clarification=True, slot=slot, user_replies={"gives": "It is 39.", "otherwise": "I do not know that."}
    )
    return row["user_replies"]


CASES: list[tuple[Callable[[Row], object], str]] = [
    (lambda row: row.pop("answer"), "column 'answer' must not be missing"),
    (lambda row: row.update(task="trivia"), "line 2: column 'task' fails"),
    (lambda row: row.update(lang="tlh"), "line 2: column 'lang' fails"),
    (lambda row: row.update(answer=5), "line 2: 'answer' holds a number (5), expected a text"),
    (lambda row: row["messages"].pop(0), "line 2: the dialogue must open with a system and a user message"),
    (lambda row: row["messages"][1].update(content=[{"type": "text"}]), "line 2: 'messages[1].content' holds a list"),
    (lambda row: row.update(support=[]), "line 2: names no supporting sentence"),
    (lambda row: first_calls(row).append(None), "line 2: every call needs one of the tools"),
    (lambda row: row.update(messages=[]), "line 2: the dialogue must open with a system and a user message"),
    (lambda row: row["messages"].insert(2, {"role": "developer", "content": "x"}), "line 2: a message's role must be"),
    (lambda row: row["messages"][1].update(content=None), "line 2: every message needs a text"),
    (
        lambda row: row["messages"][-1].update(content="I do not know."),
        "line 2: the last message must be the assistant's and hold 'final'",
    ),
    (
        lambda row: row.update(final=f"{row['final']}; of another dialogue"),
        "line 2: the last message must be the assistant's and hold 'final'",
    ),
    (lambda row: first_call(row).update(name="search"), "line 2: every call needs one of the tools"),
    (lambda row: first_call(row).update(arguments='{"page": "x"}'), "line 2: every call needs one of the tools"),
    (lambda row: row.update(asked=99), "line 2: 'asked' must be the number of ask_user calls"),
    (lambda row: row.update(solved=True, lucky=True), "line 2: a row cannot be both solved and lucky"),
    (lambda row: row.update(split="shadow"), "split 'shadow'"),
    (lambda row: row.update(posed=None), "posed_ask"),
    (lambda row: row["posed"].pop("quoted"), "line 2: 'posed' needs 'quoted' and 'listed'"),
    (lambda row: row["posed"].update(listed=[None]), "line 2: 'posed' needs 'quoted' and 'listed'"),
    (lambda row: row.update(user_replies="Nothing is missing."), "key 'user_replies' holds"),
    (
        lambda row: row.update(user_replies={"gives": 39, "otherwise": "x"}),
        "line 2: 'user_replies.gives' holds a number (39), expected a text",
    ),
    (
        lambda row: first_call(row).update(arguments={"title": "x"}),
        'tool_calls[0].function.arguments\' holds an object ({"title":"x"}), expected a text',
    ),
    (
        lambda row: row["messages"][1].update(content=72),
        "line 2: 'messages[1].content' holds a number (72), expected a text",
    ),
    (lambda row: row.update(support=[7, "x"]), "line 2: 'support[0]' holds a number (7), expected a text"),
    (lambda row: row.update(passages=[{"title": "x"}]), "line 2: every page in 'passages' needs a title and a text"),
    (
        lambda row: (with_missing_information(row), row.update(slot=None)),
        "line 2: a row with 'user_replies' that needs a clarification needs a 'slot'",
    ),
    (lambda row: row["user_replies"].update(gives="It is 39."), "line 2: 'user_replies' needs 'gives' exactly where"),
    (lambda row: with_missing_information(row).update(gives=""), "line 2: 'user_replies' needs 'gives' exactly where"),
]


def check(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines), encoding="utf-8")
    check_rows(read_rows(path), path, "pool")


@pytest.mark.parametrize(("damage", "sentence"), CASES)
def test_a_damaged_row_raises_an_error_that_names_the_fault(
    damage: Callable[[Row], object], sentence: str, lines: list[str], tmp_path: Path
) -> None:
    row = json.loads(lines[1])
    damage(row)
    with pytest.raises(RowError) as caught:
        check(tmp_path / "rows.jsonl", [lines[0], json.dumps(row), *lines[2:]])
    assert sentence in str(caught.value)


def test_a_row_with_contradicting_answer_marks_is_accepted(lines: list[str], tmp_path: Path) -> None:
    row = json.loads(lines[1])
    row["messages"][-1]["content"] = "Answer: 1\nAnswer: 2"
    row.update(final=answer_in(row["task"], "Answer: 1\nAnswer: 2"), solved=False, lucky=False)
    assert row["final"] == "1; 2"
    check(tmp_path / "rows.jsonl", [lines[0], json.dumps(row)])


@pytest.mark.parametrize("old", [{}, {"user_replies": None}])
def test_rows_without_user_replies_are_read_and_counted_as_unplayable(
    lines: list[str], tmp_path: Path, old: Row
) -> None:
    rows = [json.loads(line) for line in lines]
    del rows[1]["user_replies"], rows[3]["user_replies"]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row | (old if "user_replies" not in row else {})) for row in rows))
    frame = check_rows(read_rows(path), path, "pool")
    assert unplayable(frame) == 2
    assert [is_playable(row) for row in frame.iter_rows(named=True)] == [True, False, True, False, True]
    with pytest.raises(RowError, match="rc1 build-pool"):
        World(frame.row(1, named=True))


def test_a_repeated_id_raises_an_error(lines: list[str], tmp_path: Path) -> None:
    with pytest.raises(RowError, match="column 'id'"):
        check(tmp_path / "rows.jsonl", [*lines, lines[0]])


@pytest.mark.parametrize(("body", "sentence"), [("", "is empty")])
def test_a_file_without_rows_raises_an_error(body: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(body)
    with pytest.raises(RowError, match=sentence):
        read_rows(path)


def error_of(path: Path) -> str:
    with pytest.raises(RowError) as caught:
        read_rows(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda line: line[:-1], r"rows.jsonl, line 4: not valid JSON \(.*\); expected one JSON object per line"),
        (lambda line: "[1]", "rows.jsonl, line 4: found list; expected a JSON object"),
        (lambda line: line.replace('"en"', "7"), r"rows.jsonl, line 4: 'lang' holds a number \(7\), expected a text"),
        (lambda line: line.replace('"lang"', '"\\ud800":1,"lang"'), "rows.jsonl, line 4: not valid JSON"),
        (lambda line: line.replace('"support":[', '"support":[null,'), "rows.jsonl: row 4 .*'support' holds null"),
    ],
)
def test_the_error_names_the_line_of_the_file(
    damage: Callable[[str], str], sentence: str, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines[:3], damage(lines[3]), *lines[4:]]))
    whole_file = error_of(path)
    monkeypatch.setattr(frame, "_PARSED_AT_ONCE", 1)  # every line by itself
    assert error_of(path) == whole_file
    assert re.search(sentence, whole_file)


def test_rows_read_in_parts_equal_the_whole_file(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in ("whole.jsonl", "parts.jsonl")]
    paths[0].write_text("\n".join(lines))
    paths[1].write_text("\n\n".join(lines) + "\n\n \n")
    whole = read_rows(paths[0])
    monkeypatch.setattr(frame, "_PARSED_AT_ONCE", len(lines[0]) + 100)
    parts = read_rows(paths[1])
    assert parts.n_chunks() > 1
    assert_frame_equal(parts, whole)


METRICS = {
    "id": ["a", "b", "c"],
    "task": ["gsm8k"] * 3,
    **{name: [1, 2, 3] for name in ("len_tokens", "turns", "tool_hops", "entities", "ops_numeric", "coref_pronouns")},
    "connector_density": [0.0, 1.5, 100.0],
    "clue_overlap": [0.0, 0.5, 1.0],
    "ambiguity_flags": [[], ["x"], []],
    "needs_clarification": [True, False, True],
    "bucket": ["easy", "medium", "hard"],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("turns", 0), ("entities", -1), ("connector_density", 100.1), ("clue_overlap", float("nan")),
        ("bucket", "another"), ("id", ""), ("id", "a"), ("ambiguity_flags", None),
    ],
)  # fmt: skip
def test_an_invalid_metric_raises_an_error_that_names_line_and_column(name: str, value: object) -> None:
    metrics = pl.DataFrame(METRICS, schema=frame.METRIC_TYPES)
    schema.check_metrics(metrics, Path("metrics"))
    damaged = metrics.with_columns(pl.Series(name, [metrics[name][0], value, metrics[name][2]], metrics[name].dtype))
    with pytest.raises(RowError, match=rf"line \d: .*'{name}' "):
        schema.check_metrics(damaged, Path("metrics"))


@pytest.mark.parametrize("name", ["id", "ambiguity_flags"])
def test_a_missing_or_wrongly_typed_metric_raises_an_error_that_names_it(name: str) -> None:
    metrics = pl.DataFrame(METRICS, schema=frame.METRIC_TYPES)
    for other in (metrics.drop(name), metrics.with_columns(pl.lit(b"other").alias(name))):
        with pytest.raises(RowError, match=f"column '{name}'"):
            schema.check_metrics(other, Path("metrics"))
