"""Whether a final answer gives none: a refusal to help, or that it cannot be known."""

from __future__ import annotations

import re

from rc1_lib.answer_rules.plain_text import plain_text

_DECLINES = re.compile(
    r"\b(?:i|we)(?: am| are|'m|'re) (?:unable|not able|not allowed|not permitted|not sure)\b|"
    r"\b(?:i|we) (?:really |just |simply )?"
    r"(?:cannot|can ?not|can't|could not|couldn't|will not|won't|do not|don't|am not going to) "
    r"(?:\w+ )?(?:know|tell|say|answer|help|assist|provide|determine|comply|give|discuss|share|find|have enough)\b|"
    r"\b(?:cannot|can ?not|can't|could not|couldn't) be (?:determined|answered|known|said|found|told|worked out)\b|"
    r"\b(?:it is|it's|that is|that's) (?:not (?:known|clear|possible to)|unknown|impossible to)\b|"
    r"\b(?:not enough|insufficient) (?:information|data|evidence|context)\b|"
    r"\bno idea\b|\bas an? (?:ai|language model)\b|"
    r"^(?:the answer is )?(?:unknown|undetermined|unanswerable|undecidable|n/a|not known|no answer)\.?$|"
    r"不知道|不清楚|不晓得|(?:无法|無法|不能|没法|难以)(?:确定|確定|回答|判断|判斷|得知|提供|知道|给出|帮)|"
    r"(?:信息|資訊|条件|资料)不足|没有足够的?(?:信息|资料|条件)"
)


def declines(answer: str) -> bool:
    """Whether `answer` refuses, or says that it cannot be known, in English or Chinese.

    It is asked about wrong answers alone: a text that gives the right one, whatever it says around it, has answered.
    """
    text = plain_text(answer)
    return _DECLINES.search(answer.lower() if text is None else text) is not None
