"""Some 1,350 answers by kind: the rule reads each as `pairs.jsonl` says (a kind a line)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.answer_rules.names import same_name
from rc1_lib.answer_rules.numbers import same_number
from rc1_lib.answer_rules.refusals import declines
from rc1_lib.answer_rules.verdicts import verdict_in

PAIRS = [json.loads(line) for line in Path(__file__).with_name("pairs.jsonl").open(encoding="utf-8")]
VERDICTS = {"yes": True, "no": False, "neither": None}
RULES: dict[str, Callable[[str, str], bool]] = {
    "number": same_number,
    "name": same_name,
    "verdict": lambda answer, gold: verdict_in(answer) is VERDICTS[gold],
    "refusal": lambda answer, gold: declines(answer),
}


@pytest.mark.parametrize("pairs", PAIRS, ids=lambda pairs: f"{pairs['rule']}-{pairs['kind']}-{pairs['gold']}")
def test_answers_are_read_as_the_pairs_say(pairs: dict[str, Any]) -> None:
    rule = RULES[pairs["rule"]]
    assert [answer for answer in pairs["answers"] if rule(answer, pairs["gold"]) is not pairs["right"]] == []
