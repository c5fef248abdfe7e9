"""The answer in a final message."""

from __future__ import annotations

from rc1_lib.rows.conventions import ANSWER_MARK

_MARKS = tuple(mark.strip() for mark in ANSWER_MARK.values())


def final_answer(content: str) -> str:
    """What stands behind the last `Answer:` (or `答案：`), or the whole message where no such mark stands."""
    ends = [place + len(mark) for mark in _MARKS if (place := content.rfind(mark)) >= 0]
    return content[max(ends, default=0) :].strip()
