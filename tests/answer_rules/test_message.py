"""Which part of a final message is the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.answer_rules.message import final_answer, last_statement
from rc1_lib.task_specs import answer_in, is_right


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("39*2 = 78, so. Answer: 384", "384"),
        ("所以。答案：是", "是"),
        ("答案: 是", "是"),
        ("**Answer:** 384", "** 384"),
        ("**Answer**: 384", "384"),
        ("ANSWER: 384", "384"),
        ("Final Answer: 384\nThat was easy.", "384"),
        ("Answer:\n\n384\nBecause of 78.", "384"),
        ("Answer: 384. This is because 2 * 192 = 384.", "384. This is because 2 * 192 = 384."),
        ("Answer: \\boxed{384}", "384"),
        ("Answer: $\\boxed{\\frac{1}{2}}$.", "\\frac{1}{2}"),
        ("Answer: \\boxed{3} or \\boxed{4}", "\\boxed{3} or \\boxed{4}"),
        ("Answer:", ""),
        ("Answer:\nAnswer: 384", "384"),
        ("78, then\n#### 384", "384"),
        ("so $\\boxed{384}$ it is", "384"),
        ("#### 1\nAnswer: 384", "384"),
        ("#### Steps\n48 + 24 = 72\nThe answer is 72.", "72."),
        ("#### Steps\n#### Sum\n\\boxed{72}", "72"),
        ("#### 72\nI hope it helps.", "72"),
        ("#### Paris\nI hope this helps.", "Paris"),
        ("#### five\nIt is so.", "five"),
        ("#### 72 clips\nShe sold 48 in April.", "72 clips"),
        ("#### 1 1/2\nDone in 3 steps.", "1 1/2"),
        ("#### Step 1\n48 + 24 = 72\n#### Step 2\nSo 72.", "So 72."),
        ("#### Final answer\nParis", "Paris"),
        ("#### Paris\n#### Salkoth\nI hope this helps.", "Paris; Salkoth"),
        ("Ithwyn\n#### Paris\n#### Salkoth", "Paris; Salkoth"),
        ("\\boxed{\\text{Paris}}", "Paris"),
        ("Answer: $\\boxed{\\text{New York}}$", "New York"),
        ("", ""),
    ],
)
def test_marked_answer_is_extracted(content: str, answer: str) -> None:
    assert final_answer(content) == answer


ANSWERS = {"gsm8k": ("7", "8"), "strategyqa": ("yes", "no"), "hotpotqa": ("Ithwyn", "Salkoth")}


@pytest.mark.parametrize("task", ANSWERS)
@pytest.mark.parametrize(
    "mark", ["Answer: {}\nAnswer: {}", "答案：{} Answer: {}", "#### {}\n#### {}", "\\boxed{{{}}} \\boxed{{{}}}"]
)
def test_contradicting_marks_are_wrong_in_every_task(task: str, mark: str) -> None:
    gold, other = ANSWERS[task]
    for one, two in ((gold, other), (other, gold)):
        assert not is_right(task, answer_in(task, mark.format(one, two)), gold)
    assert is_right(task, answer_in(task, mark.format(gold, gold)), gold)


AGREED = {
    "gsm8k": (
        "72",
        "Answer: 72\nSo the answer is 72.", "Answer: 72\n\\boxed{72}", "Answer: 72\n#### 72",
        "Answer: 72\n#### Explanation\n24 + 48 = 72", "Answer: 72\n#### 1. Add\n#### 2. Done",
        "Answer: 72\nThe answer is based on 24 and 48.", "Answer: 72\nThe answer is seventy-two.",
        "Answer: 72 clips\nTherefore, the final answer is $\\boxed{72}$. I hope it is correct.",
        "Answer: $72\nThe answer is $72.00.", "Answer: 72\n\nThe final answer is: 72 clips.",
        "**Answer:** 72\n**Final answer is 72**", "答案：72\n所以答案是72个。",
        "Answer: 72\nThe answer is 72 because 24 + 48 = 72.", "#### 7\nNo.\nAnswer: 72",
    ),
    "hotpotqa": (
        "Paris",
        "Answer: Paris\nThe answer is Paris, the capital.", "Answer: Paris\nThe answer is Paris because it is so.",
        "Answer: Paris\nThe answer is correct.", "Answer: Paris\nThis answer is no longer in doubt.",
        "Answer: Paris\n\\boxed{Paris}", "Answer: Paris\nThe answer is $\\boxed{\\text{Paris}}$.",
        "Answer: Paris\n#### Sources", "Answer: Paris\nThe answer is **Paris**.",
        'Answer: Paris.\nSo the answer is "Paris".',
    ),
    "strategyqa": (
        "yes",
        "Answer: yes\nThe answer is yes because it is.", "Answer: Yes.\n\\boxed{yes}", "Answer: yes\n答案是是的",
        "Answer: yes\nThe answer is Yes, it can.", "Answer: yes\nThe answer is based on biology.",
    ),
}  # fmt: skip
"""Task -> the gold answer; messages that mark it, some with a second mark of another kind that agrees."""


@pytest.mark.parametrize("task", AGREED)
def test_second_mark_that_agrees_keeps_the_answer_right(task: str) -> None:
    gold, *messages = AGREED[task]
    assert [one for one in messages if not is_right(task, answer_in(task, one), gold)] == []


@pytest.mark.parametrize("task", ANSWERS)
@pytest.mark.parametrize(
    "marks",
    [
        "Answer: {}\n\\boxed{{{}}}", "Answer: {}\nThe final answer is {}.", "Answer: {}\nNo: the answer is **{}**",
        "答案：{}\n所以答案是{}。", "Answer: {}. The final answer is {}", "**Answer:** {}\n\n$\\boxed{{\\text{{{}}}}}$",
    ],
)  # fmt: skip
def test_second_mark_that_contradicts_makes_the_answer_wrong(task: str, marks: str) -> None:
    gold, other = ANSWERS[task]
    for one, two in ((gold, other), (other, gold)):
        assert not is_right(task, answer_in(task, marks.format(one, two)), gold)


@pytest.mark.parametrize("message", ["Answer: 7\n#### 8", "Answer: 7\nThe answer is 7,200.", "Answer: 7\n#### 7.5"])
def test_longer_number_in_a_second_mark_contradicts(message: str) -> None:
    assert not is_right("gsm8k", answer_in("gsm8k", message), "7")


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("<think>Answer: 1</think>Answer: 2", "2"),
        ("Answer: 1 is what I think.</think> Answer: 2", "2"),
        ("<think>Answer: 1</think> <THINK>Answer: 3</THINK>\nAnswer: 2", "2"),
        ("<think>Answer: 1", ""),
        ("<think>Answer: 1</think>", ""),
        ("Answer: 2 <think>or 1", "2"),
    ],
)
def test_thinking_is_not_searched_for_the_answer(content: str, answer: str) -> None:
    assert final_answer(content) == answer


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("384", "384"),
        ("I looked it up.\nThe answer is Ithwyn", "Ithwyn"),
        ("The answer to your question is: Ithwyn\nGlad to help.", "Ithwyn"),
        ("answer: 3", "3"),
        ("答案是塞尔科", "塞尔科"),
        ("I looked it up.\n\nIthwyn\n", "Ithwyn"),
        ("", ""),
    ],
)
def test_last_statement_is_the_answer_without_a_mark(content: str, answer: str) -> None:
    assert last_statement(content) == answer
    assert final_answer(content) == answer


@given(st.text(st.sampled_from("Answer: 7\n#\\boxed{}<think>/答案："), max_size=60))
def test_final_answer_is_a_part_of_the_message(message: str) -> None:
    for answer in final_answer(message).split("; "):
        assert answer in message
