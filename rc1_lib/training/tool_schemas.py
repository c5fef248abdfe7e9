"""The three tools as JSON schemas, and as text for the prompt of models whose template does not describe tools."""

from __future__ import annotations

import json
from typing import Any

from rc1_lib.environment.markers import CALL, CALL_END

ANSWER, ANSWER_END = "<tool_response>", "</tool_response>"
"""Marks around the result of a tool, as in Qwen's templates."""


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

_EXAMPLE = json.dumps({"name": "wiki", "arguments": {"title": "the title"}})
DESCRIPTION = "\n".join(
    [
        "You can call these tools:",
        *(json.dumps(tool["function"]) for tool in TOOLS),
        "To call a tool, write its name and its argument as JSON between these marks, for example:",
        f"{CALL}\n{_EXAMPLE}\n{CALL_END}",
        "You may call several tools in one turn; write nothing after the calls. What they return comes in the next "
        "message. A turn without a call is your final answer.",
    ]
)
"""Describes the tools if the model's template does not, or describes another format of calls than RC1 parses."""
