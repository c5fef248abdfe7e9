"""Refusals are distinguished from wrong answers."""

from __future__ import annotations

import pytest

from rc1_lib.answer_rules.refusals import declines


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know", "I don’t know.", "I do not know the answer.", "I really can't say.",
        "We cannot tell from this.",
        "I'm sorry, but I can't help with that.", "I cannot provide that information.", "I won't answer this question.",
        "I am unable to determine the number.", "I'm not able to share personal details.", "It cannot be determined.",
        "The answer can't be known.", "There is not enough information to answer.", "Insufficient data.", "No idea!",
        "As an AI language model, I have no opinions.", "Unknown", "The answer is unknown.", "N/A",
        "It is impossible to say.",
        "I don't have enough information.", "I could not find it.", "我不知道。", "无法确定",
        "抱歉,我无法回答这个问题。",
        "I'm sorry, I can't do that.", "Not sure.", "I need more information.", "Cannot determine",
        "Unable to determine.",
        "I don't have that information.", "I dont know", "I can't solve this", "I'm unsure", "IDK", "*Unknown*",
        "不确定", "我不确定", "无法计算", "抱歉,我不能", "No one knows that; it is unknown.",
        "这个问题不能确定。", "信息不足", "没有足够的信息。", "無法判斷",
    ],
)  # fmt: skip
def test_refusal_is_detected(answer: str) -> None:
    assert declines(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "384", "no", "yes", "not 5", "No, he could not swim.", "The Unknown Soldier", "Paris", "It is 12 jars.",
        "None", "no one", "He cannot be older than 7.", "I think it is 5.", "She did not know him, so no.", "0",
        "No. It's impossible to survive that.", "We will not give any away, so she has 12 left.",
        "No, we cannot tell time without a clock.", "12 (I am not sure)", "It's not clear, but 12",
        "He was not known as an AI researcher.", "No, no idea can be patented.", "他不知道,所以12",
        "I Don't Care", "The Cannot Tour", "They can help 12 people.", "I can say that it is 12.", "", 
        "不是", "不对", "没有", "能",
    ],
)  # fmt: skip
def test_answer_is_not_taken_for_a_refusal(answer: str) -> None:
    assert not declines(answer)
