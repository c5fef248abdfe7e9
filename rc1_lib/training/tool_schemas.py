"""The three tools as JSON schemas, for prompts of models that have to be told of them."""

from __future__ import annotations

from typing import Any


def _tool(name: str, description: str, argument: str, meaning: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {argument: {"type": "string", "description": meaning}},
                "required": [argument],
            },
        },
    }


TOOLS = (
    _tool("wiki", "Read a page.", "title", "The title of the page."),
    _tool("calc", "Work out an arithmetic expression, or compare two values.", "expression", "For example 12 > 9."),
    _tool("ask_user", "Ask the user for something that is missing from the question.", "question", "The question."),
)
