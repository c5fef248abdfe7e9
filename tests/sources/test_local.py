"""Folders with files of the public data sets: what is read, what is counted, and how damage is reported."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.run import open_run
from rc1_lib.sources import sources_sha256
from rc1_lib.sources.local import files_of_tasks, load_local
from rc1_lib.workspace.artifacts import Workspace


def _story(number: int, answer: str | None = None) -> dict[str, Any]:
    return {
        "question": f"Oskar packed {number} pears. How many are two such packs?",
        "answer": answer or f"<<{number}*2={2 * number}>>\n#### {2 * number}",
    }


def _gsm8k(root: Path, content: str, name: str = "train.jsonl") -> Path:
    file = root / "gsm8k" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return file


def _lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def test_json_lines_and_arrays_give_the_same_questions(tmp_path: Path) -> None:
    records = [_story(3), _story(4)]
    _gsm8k(tmp_path, _lines(*records))
    from_lines = load_local(tmp_path, ["gsm8k"])["gsm8k"]
    (tmp_path / "gsm8k" / "train.jsonl").unlink()
    _gsm8k(tmp_path, json.dumps(records, indent=2), "train.json")
    assert load_local(tmp_path, ["gsm8k"])["gsm8k"] == from_lines
    assert [question.id for question in from_lines.questions] == ["gsm8k/train/0", "gsm8k/train/1"]


def test_a_repeated_question_is_kept_once_across_files(tmp_path: Path) -> None:
    upper_case = {**_story(3), "question": _story(3)["question"].upper()}
    _gsm8k(tmp_path, _lines(_story(3)), "a.jsonl")
    _gsm8k(tmp_path, _lines(upper_case, _story(5)), "b.jsonl")
    loaded = load_local(tmp_path, ["gsm8k"])["gsm8k"]
    assert [question.id for question in loaded.questions] == ["gsm8k/a/0", "gsm8k/b/1"]
    assert loaded.skipped == {"duplicate question": 1}


def test_unusable_records_are_counted_by_reason_and_keep_their_numbers(tmp_path: Path) -> None:
    _gsm8k(tmp_path, _lines(_story(3, "no mark"), _story(4, "none\n#### 4"), _story(5)))
    loaded = load_local(tmp_path, ["gsm8k"])["gsm8k"]
    assert [question.id for question in loaded.questions] == ["gsm8k/train/2"]
    assert loaded.skipped == {"no #### line": 1, "no calculator marks": 1}


def test_a_line_separator_inside_a_text_does_not_end_the_record(tmp_path: Path) -> None:
    record = _story(3)
    record["question"] = record["question"].replace(". ", ".\u2028")
    _gsm8k(tmp_path, "\ufeff" + _lines(record))
    assert load_local(tmp_path, ["gsm8k"])["gsm8k"].questions[0].ask == "How many are two such packs?"


GOOD = json.dumps(_story(3))
DAMAGE = {
    "truncated line": (f"{GOOD}\n{GOOD[:40]}", 2, "not valid JSON"),
    "truncated array": (f"[\n{GOOD},\n{GOOD}\n", 4, "the file ends after a record"),
    "object over lines": (f"\n{json.dumps(_story(3), indent=2)}\n", 2, "one object over several lines"),
    "two arrays": (f"[{GOOD}]\n[{GOOD}]\n", 1, "text follows the array's end"),
    "missing key": (f'{GOOD}\n\n{{"question": "Why?"}}\n', 3, "the key 'answer' is missing (found: question)"),
    "wrong type": (f'{GOOD}\n{{"question": ["Why?"], "answer": "4"}}', 2, "holds ['Why?'] (list); expected text"),
    "not an object": (f"{GOOD}\n[1]\n", 2, "found a list; expected a JSON object"),
    "deep nesting": (f"{GOOD}\n" + '{"question": ' + "[" * 200_000, 2, "not valid JSON"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_raises_an_error_that_names_file_and_line(tmp_path: Path, damage: str) -> None:
    content, line, message = DAMAGE[damage]
    file = _gsm8k(tmp_path, content)
    with pytest.raises(SourceError) as caught:
        load_local(tmp_path, ["gsm8k"])
    assert str(caught.value).startswith(f"{file}, line {line}: ")
    assert message in str(caught.value)


WITHOUT_ANSWER = {"question": "Why?"}
NULL: dict[str, Any] = {"question": "Why?", "answer": None}


def test_few_records_without_a_key_are_left_out_counted_and_listed(tmp_path: Path) -> None:
    _gsm8k(tmp_path, _lines(_story(3), WITHOUT_ANSWER, *map(_story, range(4, 100)), NULL, _story(100)))
    loaded = load_local(tmp_path, ["gsm8k"], max_unusable=0.02)["gsm8k"]
    assert len(loaded.questions) == 98
    [(reason, count)] = loaded.skipped.items()
    assert count == 2
    assert "train.jsonl, line 2: the key 'answer' is missing (found: question)" in reason
    assert "train.jsonl, line 99: the key 'answer' holds None" in reason
    assert str(tmp_path) not in reason


def test_more_unusable_records_than_max_unusable_raise_an_error(tmp_path: Path) -> None:
    file = _gsm8k(tmp_path, _lines(_story(3), WITHOUT_ANSWER, *map(_story, range(4, 100)), NULL, _story(100)))
    with pytest.raises(SourceError) as caught:
        load_local(tmp_path, ["gsm8k"], max_unusable=0.0199)
    message = str(caught.value)
    assert f"{file}, line 2: the key 'answer' is missing" in message
    assert f"{file}, line 99: the key 'answer' holds None" in message
    assert "2 of 100 records (2.00%), and 1.99% may be left out" in message


def test_the_fingerprint_covers_every_file_that_is_read_and_no_other(tmp_path: Path) -> None:
    """A source may be a folder into which RC1 writes its own files."""
    overrides = [f"sources.use={tmp_path}", "datasets={gsm8k: 1.0}"]
    config = open_run(overrides=overrides, workspace=tmp_path).config
    fingerprint = partial(sources_sha256, config, Workspace(tmp_path))
    _gsm8k(tmp_path, _lines(_story(3)))
    names = ["A.JSON", "b.jsonl.gz", "c.parquet"]
    for name in names:
        before = fingerprint()
        (tmp_path / "gsm8k" / name).write_text("x")
        assert fingerprint() != before
    before = fingerprint()
    for name in ("gsm8k/notes.txt", "rollouts/pool.jsonl", "shadow.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert fingerprint() == before
    assert [path.name for path in files_of_tasks(tmp_path, ["gsm8k"])["gsm8k"]] == [*names, "train.jsonl"]


@pytest.mark.parametrize("name", [".train.jsonl", ".trash/train.jsonl"])
def test_hidden_files_are_left_out(tmp_path: Path, name: str) -> None:
    file = _gsm8k(tmp_path, _lines(_story(3)))
    plain = load_local(tmp_path, ["gsm8k"])
    hidden = tmp_path / "gsm8k" / name
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_bytes(b"\x00\x05\x16\x07Mac OS X")
    assert load_local(tmp_path, ["gsm8k"]) == plain
    assert files_of_tasks(tmp_path, ["gsm8k"]) == {"gsm8k": [file]}


@pytest.mark.parametrize("place", ["gsm8k", "gsm8k/train"])
def test_a_folder_of_save_to_disk_is_named(tmp_path: Path, place: str) -> None:
    _gsm8k(tmp_path, "")
    split = tmp_path / place
    split.mkdir(exist_ok=True)
    for name in ("dataset_info.json", "state.json", "data-00000-of-00001.arrow"):
        (split / name).write_text("{}")
    if place.endswith("train"):
        (split.parent / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(SourceError, match=r"was written by `save_to_disk`.*to_parquet"):
        load_local(tmp_path, ["gsm8k"])


def test_files_of_another_form_are_named(tmp_path: Path) -> None:
    _gsm8k(tmp_path, "question;answer", "train.csv")
    with pytest.raises(SourceError, match=r"gsm8k/train\.csv: of another form, so not read"):
        load_local(tmp_path, ["gsm8k"])


@pytest.mark.parametrize("name", ["more.csv", "more.csv.gz", "part2/more.jsonl.zst", "a/b/c.parquet", "more.jsonl.zip"])
def test_data_that_would_not_be_read_are_refused(tmp_path: Path, name: str) -> None:
    _gsm8k(tmp_path, _lines(_story(3)))
    for allowed in ("README.md", "LICENSE", "docs/LICENSE", name):
        (tmp_path / "gsm8k" / allowed).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "gsm8k" / allowed).write_text("x")
    with pytest.raises(SourceError, match=rf"gsm8k/{name}: would not be read"):
        load_local(tmp_path, ["gsm8k"])
    (tmp_path / "gsm8k" / name).unlink()
    assert load_local(tmp_path, ["gsm8k"])


def test_a_file_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    _gsm8k(tmp_path, _lines(_story(3)), os.fsdecode(b"caf\xe9.jsonl"))
    with pytest.raises(SourceError, match=r"gsm8k: the file name b'caf\\xe9.jsonl' is not UTF-8; rename"):
        load_local(tmp_path, ["gsm8k"])


def test_the_error_lists_every_missing_task_and_misplaced_files(
    tmp_path: Path,
) -> None:
    _gsm8k(tmp_path, "")
    (tmp_path / "mine.jsonl").touch()
    with pytest.raises(SourceError, match=r"hotpotqa, strategyqa\.") as caught:
        load_local(tmp_path, ["hotpotqa", "gsm8k", "strategyqa"])
    assert "--set 'datasets={gsm8k: 1.0}'" in str(caught.value)
    assert "mine.jsonl: not in the sub-folder of a task" in str(caught.value)


@pytest.mark.parametrize(("content", "message"), [("[]", "it has no records"), (_lines(_story(3, "x")), "1 x no ####")])
def test_a_source_without_a_usable_question_raises_an_error(tmp_path: Path, content: str, message: str) -> None:
    _gsm8k(tmp_path, content)
    with pytest.raises(SourceError, match=message):
        load_local(tmp_path, ["gsm8k"])
