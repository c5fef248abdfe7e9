"""The local rubric as a provider."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.judge.calls import Answer, Ask
from rc1_lib.judge.rubric import DIMENSIONS, score

Call = Callable[[JudgeConfig, Ask], Answer]
Make = Callable[..., Any]


def test_the_local_rubric_replies_with_its_scores_and_bills_nothing(ask: Make, settings: Make, call: Call) -> None:
    asked: Ask = ask()
    answer = call(settings("rubric", model="", api_key=None), asked)
    reply = json.loads(answer.text)
    assert reply.pop("reason")
    assert reply == score(asked.messages)
    assert set(reply) == set(DIMENSIONS)
    assert answer.model.startswith("rubric-")
    assert (answer.billable, answer.tokens_in, answer.tokens_out, answer.finish) == (False, 0, 0, "stop")


def test_the_gold_answer_does_not_change_the_scores(ask: Make, settings: Make, call: Call) -> None:
    asked: Ask = ask()
    with_gold = [{**message, "gold": "Paris", "answer": "Paris"} for message in asked.messages]
    further = dataclasses.replace(asked, messages=with_gold, system="The gold answer is Paris.", user="Paris")
    assert call(settings("rubric"), further).text == call(settings("rubric"), asked).text
