"""A sheet is blind and comes back as it was labelled; a faulty line is named, and no file of labels is overwritten."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.judge.prompt import dialogue_sha256
from rc1_lib.labels.label_file import as_text, read_labels, write_sheet
from rc1_lib.reward.chat import dialogue_of
from tests.judge.bench import dialogues

CHAT = [(f"g{place}", dialogue_of([], messages, "a row")) for place, messages in enumerate(dialogues(8))]
SAID = ({"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"})


def records(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def fill_in(path: Path, labels: list[str]) -> None:
    rows = [{**row, "label": label} for row, label in zip(records(path), labels, strict=True)]
    if path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            table = csv.DictWriter(stream, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    else:
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_sheet_is_read_back_as_it_was_labelled(form: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / f"sheet.{form}"
    assert write_sheet(path, CHAT, 5, seed=1) == 5
    fill_in(path, ["good", " Bad", "", "good", "GOOD"])
    found = read_labels(path)
    assert found.rows["good"].to_list() == [True, False, True, True]
    shown = [row["text"] for row in records(path)]
    assert [as_text(messages) for messages in found.messages.values()] == [*shown[:2], *shown[3:]]
    known = {dialogue_sha256(messages): group for group, messages in CHAT}
    assert found.rows["group"].to_list() == [known[name] for name in found.rows["dialogue"]]


def test_a_sheet_is_blind_has_no_copies_and_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    one, two, other = (tmp_path / f"{name}.jsonl" for name in "abc")
    for path, seed in ((one, 1), (two, 1), (other, 2)):
        assert write_sheet(path, [*CHAT, *CHAT], 99, seed) == len(CHAT)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    assert {frozenset(row) for row in records(one)} == {frozenset({"label", "group", "text", "messages"})}


def test_labels_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("mine")
    with pytest.raises(RC1Error, match=r"labels\.jsonl: exists and may have labels.*--out"):
        write_sheet(path, CHAT, 5, seed=1)
    assert path.read_text() == "mine"
    with pytest.raises(RC1Error, match=r"found the file type '\.txt', expected \.jsonl or \.csv"):
        write_sheet(path.with_suffix(".txt"), CHAT, 5, seed=1)


def test_a_copy_of_a_dialogue_is_the_same_dialogue_and_has_the_first_ones_group(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    rows = [{"label": label, "group": group, "messages": SAID} for label, group in (("good", 0), ("bad", "b"))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_labels(path)
    assert len(found.messages) == 1
    assert found.rows["group"].to_list() == ["0", "0"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"label": "so-so", "messages": SAID}, r"line 1: 'label' is 'so-so', expected good, bad or nothing"),
        ({"label": "good"}, r"line 1: 'messages'"),
        ({"label": "", "messages": SAID}, r"no row has a label; write good or bad"),
    ],
)
def test_a_faulty_line_is_named(row: dict[str, Any], error: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(RC1Error, match=rf"labels\.jsonl.*{error}"):
        read_labels(path)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("people.txt", "good", "found the file type '.txt', expected .jsonl or .csv"),
        ("people.csv", "label;messages\ngood;[]\n", "found no column label, messages between semicolons; .* commas"),
        ("people.csv", 'label,messages\ngood,"[]\n', "is not a valid table"),
        ("people.csv", "label,messages\ngood\n", "line 2: 'messages'"),
    ],
)
def test_another_form_is_named(name: str, content: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(RC1Error, match=error):
        read_labels(path)
