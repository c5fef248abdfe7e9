"""Whether an answer is right: what is taken as the answer, and the rules that tasks choose from (docs/answers.md)."""

from __future__ import annotations

from rc1_lib.answer_rules.names import same_name
from rc1_lib.answer_rules.numbers import same_number
from rc1_lib.answer_rules.rule import AnswerRule
from rc1_lib.answer_rules.verdicts import same_verdict

__all__ = ["AnswerRule", "same_name", "same_number", "same_verdict"]
