"""How a dialogue writes a tool call and its final answer: what pool, environment and schema agree on."""

from __future__ import annotations

ARGUMENT_OF = {"wiki": "title", "calc": "expression", "ask_user": "question"}
"""Tool -> the name of its one argument."""

ANSWER_MARK = {"en": "Answer: ", "zh": "答案："}
"""Language -> what stands before the answer in a final message."""
