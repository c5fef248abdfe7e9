"""What kind of answer a question asks for: our own examples, and public questions where they are at hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rc1_lib.language.questions import QuestionKind, may_be_a_sum, question_kind
from rc1_lib.language.statements import sentences


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Is the harbour deep?", QuestionKind.YES_OR_NO),
        ("When the mill was built, did the tower stand already?", QuestionKind.YES_OR_NO),
        ("If the guest, who is late, takes the ferry, can he be there by nine?", QuestionKind.YES_OR_NO),
        ("Didn't the ship sink?", QuestionKind.YES_OR_NO),
        ("Who built the mill?", QuestionKind.THING),
        ("If it rains, where does the ferry land?", QuestionKind.THING),
        ("Of what guild is its captain a member?", QuestionKind.THING),
        ("Between the two bridges, which one is longer?", QuestionKind.THING),
        ("Can you tell me who built the mill?", QuestionKind.EITHER),
        ("How many jugs, in all, does the tank hold?", QuestionKind.NUMBER),
        ("In which year was the guild set up?", QuestionKind.NUMBER),
        ("Is the bridge or the tower older?", QuestionKind.EITHER),
        ("Tell me about the mill.", QuestionKind.EITHER),
        ("这座桥比那座塔高吗？", QuestionKind.YES_OR_NO),
        ("他是不是船长？", QuestionKind.YES_OR_NO),
        ("谁建了这座桥？", QuestionKind.THING),
        ("镇上有多少人？", QuestionKind.NUMBER),
    ],
)
def test_the_kind_is_told_by_the_words_that_ask(question: str, kind: QuestionKind) -> None:
    assert question_kind(question) is kind


def kinds(questions: list[str]) -> Counter[QuestionKind]:
    return Counter(map(question_kind, questions))


def test_public_yes_or_no_questions_are_never_taken_for_others(shared_data: Path) -> None:
    rows = json.loads((shared_data / "strategyqa/train.json").read_text(encoding="utf-8"))
    found = kinds([row["question"] for row in rows])
    assert found[QuestionKind.THING] == found[QuestionKind.NUMBER] == 0
    assert found[QuestionKind.YES_OR_NO] > 0.9 * len(rows)


def test_public_sums_are_seldom_taken_for_yes_or_no_questions(shared_data: Path) -> None:
    lines = (shared_data / "gsm8k/train.jsonl").read_text(encoding="utf-8").splitlines()
    found = kinds([sentences(json.loads(line)["question"])[-1] for line in lines])
    assert found[QuestionKind.YES_OR_NO] < 0.001 * len(lines)


@pytest.mark.parametrize(
    ("question", "may"),
    [
        ("How many nuts are left?", True),
        ("By how many years do they differ?", True),
        ("What is the difference in pages?", True),
        ("What total do they reach?", True),
        ("两人相差多少岁？", True),
        ("结果差什么？", True),
        ("Who owns the bags?", False),
        ("Which ship is longer?", False),
        ("What town was she born in?", False),
        ("What is the name of the ship?", False),
        ("谁拿着钥匙？", False),
        ("Is it older?", False),
        ("Count them.", True),
    ],
)
def test_a_sum_answers_what_asks_for_a_quantity(question: str, may: bool) -> None:
    assert may_be_a_sum(question) is may
