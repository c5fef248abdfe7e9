"""The rules on hard pairs written by others and on every public gold answer, read from the folder next to ours."""

from __future__ import annotations

import json

import pytest

from rc1_lib.task_specs import is_right, task_names
from rc1_lib.workspace.artifacts import PROJECT_ROOT

SHARED = PROJECT_ROOT.parent / "shared"
PAIRS = SHARED / "answer_pairs" / "pairs.jsonl"
DATA = SHARED / "data"
NUMBERS = (
    "{}", "**{}**", r"\boxed{{{}}}", "${}$", "The answer is {}.", "{} clips", "x = {}", "Total: {}", "共{}个。",
    "In 2 hours she earns {} dollars.", "#### {}", "{}%",
)  # fmt: skip
NAMES = ("{}", "{}.", "the {}", '"{}"', "**{}**", "({})", " {} ", "`{}`", "_{}_", "{}!")
VERDICTS = {
    "yes": (
        "yes",
        "Yes.",
        "YES",
        "**Yes**",
        "The answer is yes.",
        "True",
        "It is true.",
        "Yes, it is.",
        "是",
        "是的。",
    ),
    "no": ("no", "No.", "NO", "**No**", "The answer is no.", "False", "It is false.", "No, it is not.", "否", "不是。"),
}
no_pairs = pytest.mark.skipif(not PAIRS.exists(), reason="the pairs are not next to the project")
no_data = pytest.mark.skipif(not DATA.exists(), reason="the public rows are not next to the project")


@no_pairs
@pytest.mark.parametrize("task", task_names())
def test_rules_misjudge_few_of_the_shared_pairs(task: str) -> None:
    pairs = [
        pair for line in PAIRS.read_text(encoding="utf-8").splitlines() if (pair := json.loads(line))["task"] == task
    ]
    found: dict[bool, list[bool]] = {True: [], False: []}
    for pair in pairs:
        found[pair["should"]].append(is_right(task, pair["given"], pair["gold"]))
    assert sum(found[False]) <= 0.02 * len(found[False])
    assert found[True].count(False) <= 0.10 * len(found[True])


@no_data
def test_every_gsm8k_gold_is_right_in_every_spelling() -> None:
    lines = (DATA / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    golds = {json.loads(line)["answer"].rpartition("####")[2].strip() for line in lines}
    rejected = [
        spelling.format(gold)
        for gold in golds
        for spelling in NUMBERS
        if not is_right("gsm8k", spelling.format(gold), gold.replace(",", ""))
    ]
    assert rejected == []


@no_data
def test_every_hotpotqa_gold_is_right_in_every_spelling() -> None:
    lines = (DATA / "hotpotqa" / "distractor_masarena_aflow_validate.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    records += json.loads((DATA / "hotpotqa" / "distractor_meve_dev100_hfform.json").read_text(encoding="utf-8"))
    golds = {record["answer"] for record in records}
    rejected = [
        spelling.format(gold)
        for gold in golds
        for spelling in NAMES
        if not is_right("hotpotqa", spelling.format(gold), gold)
    ]
    assert rejected == []


@no_data
def test_every_strategyqa_gold_is_right_in_every_spelling() -> None:
    records = json.loads((DATA / "strategyqa" / "train.json").read_text(encoding="utf-8"))
    golds = {"yes" if record["answer"] else "no" for record in records}
    assert golds == set(VERDICTS)
    assert [one for gold in golds for one in VERDICTS[gold] if not is_right("strategyqa", one, gold)] == []
