"""Label files: the same rows in every file format, and an error for each mistake."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import ConfigError, RowError
from rc1_lib.labels.label_file import Keys, LabelFile, read_labels
from rc1_lib.labels.records import read_scale
from rc1_lib.reward.verdict_agreement import VERDICT
from rc1_lib.workspace.artifacts import PROJECT_ROOT

ASKED = [{"role": "user", "content": 'How many? "Six", I think,\nor seven.'}, {"role": "assistant", "content": "7"}]


def answer(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": text}]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write the rows as lines of JSON, or as a table; a cell with a list is JSON."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, names, delimiter="\t" if path.suffix == ".tsv" else ",")
        table.writeheader()
        table.writerows(flat)
    return path


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            found[name] = json.dumps(value) if isinstance(value, list) else value
    return found


def read(tmp_path: Path, rows: list[dict[str, Any]], suffix: str = ".jsonl", **given: Any) -> LabelFile:
    return read_labels(write(tmp_path / f"labels{suffix}", rows), **given)


FORMATS = pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv"])


@FORMATS
def test_verdict_labels_are_read_the_same_from_every_file_format(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"messages": ASKED, "label": "good", "group": "a", "bucket": "hard", "annotator": "x"},
        {"messages": answer("6"), "label": "bad", "group": "a", "bucket": "easy", "annotator": "y"},
        {"messages": answer("8"), "label": None, "group": "b", "bucket": "easy", "annotator": "y"},
    ]
    found = read(tmp_path, rows, suffix)
    assert found.rows["label"].to_list() == [1.0, 0.0, None]
    assert found.rows["group"].to_list() == ["a", "a", "b"]
    assert found.rows["bucket"].to_list() == ["hard", "easy", "easy"]
    assert next(iter(found.messages.values()))[0]["content"] == ASKED[0]["content"]
    assert (found.levels, found.dimensions) == (VERDICT, ())


@FORMATS
def test_score_labels_with_scale_and_criteria_are_read_from_every_file_format(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"id": "t1", "label": 4, "labels": {"q": 3}, "dimensions": {"q": 0.25, "r": 1}},
        {"id": "t1", "label": 2, "labels": {"q": 1}, "dimensions": {"q": 0.25, "r": 1}},
        {"id": "t2", "label": 1, "labels": {"q": 2}, "dimensions": {"q": 0.5, "r": None}},
    ]
    found = read(tmp_path, rows, suffix, scale=(1.0, 4.0))
    assert found.rows["label"].to_list() == pytest.approx([1, 1 / 3, 0])
    assert found.rows["labels.q"].to_list() == pytest.approx([2 / 3, 0, 1 / 3])
    assert found.rows["dimensions.r"].to_list() == [1, 1, None]
    assert found.rows["group"].to_list() == ["t1", "t1", "t2"]
    assert found.levels == pytest.approx((0, 1 / 3, 2 / 3, 1))
    assert (found.dimensions, found.graded) == (("q", "r"), ("q",))


def test_custom_keys_and_text_prompt_and_completion_are_read(tmp_path: Path) -> None:
    rows = [{"prompt": "How many?", "completion": "6", "ok": "yes", "topic": 3, "a": 0.5, "b": 0.1, "c": 9}]
    found = read(tmp_path, rows, keys=Keys(label="ok", group="topic", dimensions=("b", "a")))
    assert found.dimensions == ("b", "a")
    assert found.rows["group"].to_list() == ["3"]
    assert next(iter(found.messages.values())) == answer("6")


def test_copies_under_different_ids_are_one_dialogue(tmp_path: Path) -> None:
    rows = [{"id": name, "messages": ASKED, "label": 1} for name in ("one", "two")]
    found = read(tmp_path, rows)
    assert found.rows["dialogue"].n_unique() == len(found.messages) == 1


@pytest.mark.parametrize(
    ("labels", "levels"),
    [
        ([0, 1, 1], (0, 1)),
        ([0, 0.5, 1], (0, 0.5, 1)),
        ([step / 40 for step in range(41)], tuple(step / 10 for step in range(11))),
    ],
)
def test_levels_are_distinct_labels_rounded_if_many(
    tmp_path: Path, labels: list[float], levels: tuple[float, ...]
) -> None:
    rows = [{"messages": answer(str(place)), "label": label} for place, label in enumerate(labels)]
    assert read(tmp_path, rows).levels == levels


SCORED = {"id": "t", "dimensions": {"q": 0.5}, "label": 1}


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{**SCORED, "label": 4}], r"line 1: 'label' .*4, .* 0 to 1; .*--scale LOW:HIGH"),
        ([SCORED, {**SCORED, "label": "fine"}], r"line 2: 'label' .*'fine', .*verdict"),
        ([SCORED, {**SCORED, "label": float("nan")}], r"line 2: 'label' .*nan, "),
        ([{**SCORED, "labels": {"q": 7}}], r"line 1: 'labels\.q' .*7, "),
        ([{**SCORED, "labels": 3}], r"'labels' .*3, .*object"),
        ([{**SCORED, "dimensions": {"q": 3}}], r"'q' .*3, .* 0 to 1, "),
        ([{**SCORED, "dimensions": {"q": "x"}}], r"'q' .*'x', "),
        ([{**SCORED, "dimensions": {"share": 1}}], r"'share': .*column"),
        ([{**SCORED, "dimensions": []}], r"'dimensions' .*\[\], .*object"),
        ([{"dimensions": {"q": 1}, "label": 1}], r"'id'"),
        ([{"label": 1, "text": "x"}], r"'messages' .*'prompt', .*label, text"),
        ([{"messages": "x", "label": 1}], r"'messages' .*JSON"),
        ([{"messages": [{"role": "user", "content": "x"}], "label": 1}], r"message .*assistant"),
        ([{"prompt": "x", "label": 1}], r"NoneType, .*chat messages"),
        ([SCORED, {**SCORED, "dimensions": {"q": 0.6}}], r"line 2: 'dimensions\.q' .*0\.6, .*0\.5 .*line 1\b"),
        ([SCORED, {**SCORED, "group": "b"}], r"line 2: 'group' .*'b', .*'t' .*line 1\b"),
        ([SCORED, {"messages": ASKED, "label": 1}], r"line 2: \w.*scores"),
        ([{**SCORED, "label": "good"}, {**SCORED, "label": 0.5}], r"line 2: 'label' .*score, .*verdict"),
        ([{"id": "t", "dimensions": {"q": 0.5}, "verdict": 1}], r"'label'.*--label"),
        ([], r"rows, .*'label'"),
    ],
)
def test_invalid_row_is_rejected_with_line_and_key(tmp_path: Path, rows: list[dict[str, Any]], error: str) -> None:
    with pytest.raises(RowError, match=error) as caught:
        read(tmp_path, rows)
    assert "labels.jsonl" in str(caught.value)


def test_at_most_ten_faults_are_listed(tmp_path: Path) -> None:
    rows = [{**SCORED, "id": str(number), "label": 9} for number in range(12)]
    with pytest.raises(RowError, match=r"line 1: .*line 10: .* 2 more\."):
        read(tmp_path, rows)


def test_criterion_that_no_row_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(RowError, match=r"line 1: .*'z'.* id, dimensions, label"):
        read(tmp_path, [SCORED], keys=Keys(dimensions=("z",)))


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("labels.txt", "x", "'.txt', expected one of .jsonl, .json, .csv, .tsv"),
        ("labels.csv", "", "line 1: "),
        ("labels.csv", "id,label,label\n", "'label' twice"),
        ("labels.csv", "id,label\na,1\nb\n", "line 3: found 1 cells"),
        ("labels.csv", 'id,label\n"a"x,1\n', "line 2: "),
        ("labels.tsv", "id\tlabel\n\xff", "UTF-8"),
        ("labels.jsonl", '{"id": 1}\n{', "line 2"),
        ("labels.jsonl", "[1]", "JSON object"),
    ],
)
def test_damaged_file_is_rejected_with_its_line(tmp_path: Path, name: str, content: str, error: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(RowError) as caught:
        read_labels(path)
    assert error in str(caught.value)


@FORMATS
def test_missing_file_is_named(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(RowError, match=r"none\..*\(No such file"):
        read_labels(tmp_path / f"none{suffix}")


@pytest.mark.parametrize("text", ["4:1", "1-5", "a:b", "1:inf", "2"])
def test_invalid_scale_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--scale .*LOW:HIGH"):
        read_scale("--scale", text)


def test_table_of_the_labels_page_is_read_with_the_flags_of_the_page(tmp_path: Path) -> None:
    page = (PROJECT_ROOT / "docs" / "how-to" / "labels.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"```\n(id,annotator.*?)```", page, re.DOTALL)
    assert "--label overall --scale 1:5 --dimensions clear,short" in page
    path = tmp_path / "people.csv"
    path.write_text(table, encoding="utf-8")
    found = read_labels(path, Keys(label="overall", dimensions=("clear", "short")), read_scale("--scale", "1:5"))
    assert found.rows["label"].to_list() == [0.75, 1.0, 0.25]
    assert found.rows["dialogue"].to_list() == ["t1", "t1", "t2"]
