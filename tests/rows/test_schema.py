"""Each way in which a row can be no row is refused, in a sentence that names the line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandera.polars as pa
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rc1_lib.environment.world import World
from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.pool import checked_rows
from rc1_lib.rows import frame, schema
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.playable import is_playable, unplayable
from rc1_lib.rows.schema import check_rows
from rc1_lib.task_specs import answer_in
from rc1_lib.workspace.artifacts import Workspace

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


def missing(row: Row) -> Row:
    """The replies of the row, made one from which something was taken out."""
    slot = {"where": "ask", "value": "39", "vague": "some", "wanted": "how many"}
    row.update(
        needs_clarification=True, slot=slot, user_replies={"gives": "It is 39.", "otherwise": "I do not know that."}
    )
    return row["user_replies"]


CASES: list[tuple[Callable[[Row], object], str]] = [
    (lambda row: row.pop("answer"), "column 'answer' must not be missing"),
    (lambda row: row.update(answer=""), "column 'answer' must not be empty"),
    (lambda row: row.update(task="trivia"), "column 'task'"),
    (lambda row: row.update(lang="fr"), "column 'lang'"),
    (lambda row: row.update(support=[]), "names no supporting sentence"),
    (lambda row: first_calls(row).append(None), "every call needs one of the tools"),
    (lambda row: first_calls(row).append({}), "every call needs one of the tools"),
    (lambda row: first_calls(row).append({"function": None}), "every call needs one of the tools"),
    (lambda row: row["messages"][-1].update(tool_calls=[None]), "every call needs one of the tools"),
    (lambda row: row.update(messages=[]), "must open with a system and a user message"),
    (lambda row: row["messages"].pop(0), "must open with a system and a user message"),
    (lambda row: row["messages"].insert(2, {"role": "developer", "content": "x"}), "a message's role must be"),
    (lambda row: row["messages"][1].update(content=None), "every message needs a text"),
    (lambda row: row["messages"][-1].update(content="I do not know."), "hold 'final'"),
    (lambda row: row.update(final=""), "hold 'final'"),
    (lambda row: row.update(final=f"{row['final']}; of another dialogue"), "hold 'final'"),
    (lambda row: row.update(final=f"of another dialogue; {row['final']}"), "hold 'final'"),
    (lambda row: first_call(row).update(name="search"), "every call needs one of the tools"),
    (lambda row: first_call(row).update(arguments="{broken"), "every call needs one of the tools"),
    (lambda row: first_call(row).update(arguments='{"page": "x"}'), "every call needs one of the tools"),
    (lambda row: row.update(asked=99), "'asked' must be the number of ask_user calls"),
    (lambda row: row.update(solved=True, lucky=True), "cannot be both solved and lucky"),
    (lambda row: row.update(split="shadow"), "is of split 'shadow', expected only rows of split 'pool'"),
    (lambda row: row.update(posed=None), "posed_ask"),
    (lambda row: row.update(user_replies="Nothing is missing."), "key 'user_replies' holds"),
    (
        lambda row: row.update(user_replies={"gives": 39, "otherwise": "x"}),
        "line 2: 'user_replies.gives' holds a number (39), expected a text",
    ),
    (
        lambda row: row["user_replies"].update(otherwise=["x"]),
        "line 2: 'user_replies.otherwise' holds a list ([\"x\"]), expected a text",
    ),
    (
        lambda row: first_call(row).update(arguments={"title": "x"}),
        'tool_calls[0].function.arguments\' holds an object ({"title":"x"}), expected a text',
    ),
    (
        lambda row: row["messages"][1].update(content=72),
        "line 2: 'messages[1].content' holds a number (72), expected a text",
    ),
    (lambda row: row.update(answer=True), "line 2: 'answer' holds a truth value (true), expected a text"),
    (lambda row: row.update(support=[7, "x"]), "line 2: 'support[0]' holds a number (7), expected a text"),
    (lambda row: row.update(passages=[{"title": "x"}]), "line 2: every page in 'passages' needs a title and a text"),
    (
        lambda row: row.update(passages=[{"title": "", "text": "x"}]),
        "every page in 'passages' needs a title and a text",
    ),
    (
        lambda row: (missing(row), row.update(slot=None)),
        "line 2: a row with 'user_replies' that needs a clarification needs a 'slot'",
    ),
    (
        lambda row: (missing(row), row.update(slot={"where": "ask", "value": "39", "vague": "some"})),
        "a row with 'user_replies' that needs a clarification needs a 'slot'",
    ),
    (lambda row: missing(row).update(gives=None), "'user_replies' needs 'gives' exactly where"),
    (lambda row: row["user_replies"].update(gives="It is 39."), "'user_replies' needs 'gives' exactly where"),
    (lambda row: missing(row).pop("gives"), "'user_replies' needs 'gives' exactly where"),
    (lambda row: missing(row).update(gives=""), "'user_replies' needs 'gives' exactly where"),
    (lambda row: missing(row).pop("otherwise"), "'user_replies' needs 'gives' exactly where"),
    (lambda row: row["user_replies"].update(otherwise=""), "'user_replies' needs 'gives' exactly where"),
]


def check(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines), encoding="utf-8")
    check_rows(read_rows(path), path, "pool")


@pytest.mark.parametrize(("damage", "sentence"), CASES)
def test_a_damaged_row_is_refused_in_a_sentence(
    damage: Callable[[Row], object], sentence: str, lines: list[str], tmp_path: Path
) -> None:
    row = json.loads(lines[1])
    damage(row)
    with pytest.raises(RowError) as refused:
        check(tmp_path / "rows.jsonl", [lines[0], json.dumps(row), *lines[2:]])
    assert sentence in str(refused.value)


def test_whole_rows_are_accepted(lines: list[str], tmp_path: Path) -> None:
    check(tmp_path / "rows.jsonl", lines)


def test_a_row_whose_marks_contradict_each_other_is_accepted(lines: list[str], tmp_path: Path) -> None:
    row = json.loads(lines[1])
    row["messages"][-1]["content"] = "Answer: 1\nAnswer: 2"
    row.update(final=answer_in(row["task"], "Answer: 1\nAnswer: 2"), solved=False, lucky=False)
    assert row["final"] == "1; 2"
    check(tmp_path / "rows.jsonl", [lines[0], json.dumps(row)])


@pytest.mark.parametrize("old", [{}, {"user_replies": None}])
def test_rows_of_an_older_form_are_read_and_counted(lines: list[str], tmp_path: Path, old: Row) -> None:
    rows = [json.loads(line) for line in lines]
    del rows[1]["user_replies"], rows[3]["user_replies"]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row | (old if "user_replies" not in row else {})) for row in rows))
    frame = check_rows(read_rows(path), path, "pool")
    assert unplayable(frame) == 2
    assert [is_playable(row) for row in frame.iter_rows(named=True)] == [True, False, True, False, True]
    with pytest.raises(RowError, match="rc1 build-pool"):
        World(frame.row(1, named=True))


def test_two_rows_of_one_id_are_refused(lines: list[str], tmp_path: Path) -> None:
    with pytest.raises(RowError, match="column 'id'"):
        check(tmp_path / "rows.jsonl", [*lines, lines[0]])


def test_a_content_that_is_no_text_is_refused(lines: list[str], tmp_path: Path) -> None:
    row = json.loads(lines[1])
    row["messages"][1]["content"] = {"text": "hidden"}
    with pytest.raises(RowError, match="expected a text"):
        check(tmp_path / "rows.jsonl", [lines[0], json.dumps(row)])


@pytest.mark.parametrize(("body", "sentence"), [("", "is empty"), ("  \n", "line 1: not valid JSON|holds no row")])
def test_a_file_without_rows_is_refused(body: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(body)
    with pytest.raises(RowError, match=sentence):
        read_rows(path)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RowError, match=str(tmp_path)):
        read_rows(tmp_path)


def test_a_file_that_changed_is_read_anew_and_what_is_handed_out_may_be_altered(
    lines: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines))
    first = read_rows(path)
    first.drop_in_place("question")
    assert read_rows(path).width == first.width + 1
    path.write_text("\n".join(lines[1:]))
    assert read_rows(path).height == first.height - 1


def test_a_structured_content_inside_a_text_is_a_text(lines: list[str], tmp_path: Path) -> None:
    row = json.loads(lines[1])
    row["messages"][1]["content"] += ' {"content": [1]}'
    check(tmp_path / "rows.jsonl", [lines[0], json.dumps(row)])


def refusal(path: Path) -> str:
    with pytest.raises(RowError) as refused:
        read_rows(path)
    return str(refused.value)


def test_a_last_line_that_was_cut_off_is_found_by_halving(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines * 400)[:-200])
    read, asked = pl.read_ndjson, []
    monkeypatch.setattr(pl, "read_ndjson", lambda *given, **named: asked.append(1) or read(*given, **named))
    assert "rows.jsonl, line 2000: not valid JSON" in (said := refusal(path))
    assert "the last line is cut off" in said
    assert len(asked) < 20


def test_a_fault_of_a_pool_is_looked_for_once_however_many_gates_read_it(
    evidence: Evidence, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = replace(evidence, run=replace(evidence.run, workspace=Workspace(tmp_path)))
    path = damaged.path("pool")
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines)[:-200])
    read, asked = checked_rows.read_rows, []
    monkeypatch.setattr(checked_rows, "read_rows", lambda path: asked.append(path) or read(path))
    for _ in range(3):
        with pytest.raises(RowError, match=r"line 5: .*JSON"):
            damaged.rows("pool")
    assert asked == [path]


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
def test_a_fault_far_down_is_named_by_its_line_in_the_file(
    damage: Callable[[str], str], sentence: str, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines[:3], damage(lines[3]), *lines[4:]]))
    at_once = refusal(path)
    monkeypatch.setattr(frame, "_PARSED_AT_ONCE", 1)  # every line by itself
    assert refusal(path) == at_once
    assert re.search(sentence, at_once)


def test_rows_read_in_parts_are_the_rows_of_the_file(
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
        *((name, 0) for name in ("len_tokens", "turns")),
        *((name, -1) for name in ("tool_hops", "entities", "ops_numeric", "coref_pronouns")),
        *(("connector_density", value) for value in (-0.1, 100.1, float("nan"))),
        *(("clue_overlap", value) for value in (-0.1, 1.1, float("nan"))),
        *((name, "another") for name in ("task", "bucket")),
        ("id", ""),
        ("id", "a"),
        *((name, None) for name in METRICS),
    ],
)
def test_a_metric_that_cannot_be_is_named(name: str, value: object) -> None:
    metrics = pl.DataFrame(METRICS, schema=frame.METRIC_TYPES)
    schema.check_metrics(metrics, Path("metrics"))
    damaged = metrics.with_columns(pl.Series(name, [metrics[name][0], value, metrics[name][2]], metrics[name].dtype))
    with pytest.raises(RowError, match=rf"line \d: .*'{name}' "):
        schema.check_metrics(damaged, Path("metrics"))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_that_is_missing_or_of_another_type_is_named(name: str) -> None:
    metrics = pl.DataFrame(METRICS, schema=frame.METRIC_TYPES)
    for other in (metrics.drop(name), metrics.with_columns(pl.lit(b"other").alias(name))):
        with pytest.raises(RowError, match=f"column '{name}'"):
            schema.check_metrics(other, Path("metrics"))


def test_a_count_of_questions_is_none_below_zero() -> None:
    """Of itself: a whole dialogue with such a count is at odds with its calls as well."""
    asked = pa.DataFrameSchema({"asked": schema._rows().columns["asked"]})
    with pytest.raises(RowError, match=r"line 1: .*'asked' "):
        schema._validate(asked, pl.DataFrame({"asked": [-1, 0]}), Path("rows"))
