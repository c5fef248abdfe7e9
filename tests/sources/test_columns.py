"""A data set with columns of other names: what `sources.columns` reads, and which mappings are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.config.file import load_config
from rc1_lib.errors import ConfigError, SourceError
from rc1_lib.gates.answer_rule import answer_rule_gate
from rc1_lib.records import Status
from rc1_lib.sources import load_questions
from rc1_lib.sources.hub import load_hub
from rc1_lib.sources.local import load_local
from rc1_lib.task_specs import task_spec
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace

PLACES = [first + last for first in ("Mar", "Nor", "Bel", "Dun", "Kel") for last in ("dale", "wick", "ford", "holm")]
RECORDS: list[dict[str, Any]] = [
    {
        "query": f"Who is mayor of {place}?",
        "found": {"text": [f"Ida {place[::-1].capitalize()}"], "at": [0]},
        "page": f"{place} lies on a river. Its mayor is Ida {place[::-1].capitalize()}.",
        "jars": 7 * at + 3,
        "sum": f"{at + 1} + {6 * at + 2}",
    }
    for at, place in enumerate(PLACES)
]
COLUMNS = {"question": "query", "answer": "found.text", "context": "page"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for task in ("any_text", "any_number"):
        (tmp_path / task).mkdir()
        (tmp_path / task / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return tmp_path


def test_a_folder_and_a_table_read_by_datasets_give_the_same_questions(root: Path) -> None:
    pytest.importorskip("datasets")
    local = load_local(root, ["any_text"], columns={"any_text": COLUMNS})["any_text"]
    pl.DataFrame(RECORDS).write_parquet(root / "train.parquet")
    names, mapped = {"any_text": str(root / "train.parquet")}, {"any_text": COLUMNS}
    table = load_hub(names, ["any_text"], cache_dir=root / "cache", columns=mapped)["any_text"]
    assert [(one.ask, one.answer, one.slot) for one in table.questions] == [
        (one.ask, one.answer, one.slot) for one in local.questions
    ]
    assert len(local.questions) == len(RECORDS) and all(one.slot for one in local.questions)
    golds = pl.DataFrame(
        {"id": one.id, "source_id": one.id, "task": "any_text", "answer": one.answer, "question": one.ask}
        for one in local.questions
    )
    assert answer_rule_gate(golds, lambda task: task_spec(task).is_right).status is Status.PASSED


def test_the_configuration_maps_a_known_task_too(tmp_path: Path) -> None:
    (tmp_path / "gsm8k").mkdir()
    records = [
        {"problem": f"A box has {n} jars. How many are in two?", "work": f"<<{n}*2={2 * n}>>\n#### {2 * n}"}
        for n in range(3, 23)
    ]
    (tmp_path / "gsm8k" / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    mapped = "sources.columns={gsm8k: {question: problem, answer: work}}"
    config = load_config(
        PROJECT_ROOT / "configs/local.yaml", ["datasets={gsm8k: 1.0}", f"sources.use={tmp_path}", mapped]
    )
    questions, _ = load_questions(config, Workspace(tmp_path))
    assert [one.answer for one in questions["gsm8k"]] == [str(2 * n) for n in range(3, 23)]


WRONG = {
    "no such column": ("any_text", {**COLUMNS, "answer": "found.texts"}, r"line 1: .*'found\.texts'.*text, at"),
    "no parts": ("any_text", {**COLUMNS, "context": "page.body"}, r"line 1: .*'page\.body'"),
    "another form": ("any_number", {**COLUMNS}, r"line 1: .*'answer' holds"),
    "whole page as the answer": ("any_text", {**COLUMNS, "answer": "at"}, "'at' is missing"),
    # Every record can be read; that the rule reckons `3 + 8`, and pays the question for its answer, shows only to it.
    "a rule that pays the question": ("any_number", {"question": "sum", "answer": "jars"}, "any_number' does not fit"),
    "numbers as texts": ("any_text", {**COLUMNS, "answer": "jars"}, "any_text' does not fit"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mapping_that_does_not_hold_names_file_and_key(root: Path, case: str) -> None:
    task, columns, message = WRONG[case]
    with pytest.raises(SourceError, match=message) as caught:
        load_local(root, [task], columns={task: columns})
    assert str(caught.value).startswith(str(root / task)) and f"sources.columns.{task}" in str(caught.value)


def test_a_key_that_no_mapping_has_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sources\.columns\.any_text\.label"):
        load_config(PROJECT_ROOT / "configs/local.yaml", ["sources.columns={any_text: {label: x}}"])
