"""Decide whether an answer is right: find the answer in a message, compare it by a task's rule (docs/answers.md)."""

from __future__ import annotations

from rc1_lib.answer_rules.names import same_name
from rc1_lib.answer_rules.numbers import same_number
from rc1_lib.answer_rules.rule import AnswerRule
from rc1_lib.answer_rules.verdicts import same_verdict

__all__ = ["AnswerRule", "same_name", "same_number", "same_verdict"]
