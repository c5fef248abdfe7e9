"""Recognise final answers that refuse to help, or say that the answer cannot be known."""

from __future__ import annotations

import re

from rc1_lib.answer_rules.plain_text import plain_text

_CANNOT = r"(?:cannot|can ?not|can't|cant|could not|couldn't|will not|won't|do not|don't|dont|am not going to)"
_DO = (
    r"(?:know|tell|say|answer|help|assist|provide|determine|decide|comply|give (?:you |an |the )?(?:answer|advice|that|"
    r"information)|discuss|share|find|solve|calculate|work (?:it|that|this) out|do (?:that|this)|be (?:sure|certain)|"
    r"have (?:enough|that|the|any|access))"
)
_DECLINES = re.compile(
    rf"\b(?:i|we) (?:really |just |simply |honestly )?{_CANNOT} (?:\w+ )?{_DO}\b|"
    rf"^{_CANNOT} (?:be )?(?:determined?|say|tell|know|answer(?:ed)?)\b|"
    r"\b(?:i|we)(?: am| are|'m|'re) (?:unable|not able|not allowed|not permitted|not sure|not certain|unsure)\b|"
    r"^(?:unable to|not (?:sure|certain|known|clear)|idk|no idea|no answer)\b|\bi have no idea\b|\bi need more\b|"
    r"\b(?:it|this|that|the answer) (?:cannot|can ?not|can't|could not|couldn't) be (?:determined|answered|known|said|"
    r"found|told|worked out)\b|"
    r"\b(?:it|this|that|the answer) is (?:not (?:known|clear|possible to (?:say|tell|know|determine))|unknown|"
    r"impossible to (?:say|tell|know|determine|answer))\b|"
    r"\b(?:not enough|insufficient) (?:information|data|evidence|context)\b|"
    r"\b(?:i am|i'm|^as) an? (?:ai|language model)\b|"
    r"^(?:unknown|undetermined|unanswerable|undecidable|n/a)$|"
    r"^我?(?:真的|也|还)?(?:不知道|不清楚|不晓得|不确定|不確定)|"
    r"(?:无法|無法|不能|没法|难以)(?:确定|確定|回答|判断|判斷|得知|提供|知道|给出|计算|計算|帮)|抱歉,?我(?:不能|无法|無法)|"
    r"(?:信息|資訊|条件|资料)不足|没有足够的?(?:信息|资料|条件)"
)
_ANSWERS = re.compile(r"^(?:yes|no)\b(?! (?:idea|answer|one knows))|\d|^(?:是|对|對|不是|不对|不對|能|会)[,，。]")
"""An answer that begins with a verdict or contains a number is not a refusal, whatever else it says."""


def declines(answer: str) -> bool:
    """Whether `answer` refuses, or says that it cannot be known, in English or Chinese.

    Call it for wrong answers only: a text with the right answer is an answer, whatever else it says. A text with a
    verdict or a number is a wrong answer, not a refusal.
    """
    plain = plain_text(answer)
    text = (answer.lower() if plain is None else plain).strip().strip("*_`.\"' ")
    return _ANSWERS.search(text) is None and _DECLINES.search(text) is not None
