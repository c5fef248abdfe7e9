"""Small hand-written rows, and model turns in Qwen3's chat format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rc1_lib.environment.turn import Limits

LIMITS = Limits(turns=6, tokens=10_000, tool_errors=2, malformed=1, calls=5, turn_chars=4_000, argument_chars=300)

STORY: dict[str, Any] = {
    "id": "pool-gsm8k-1",
    "task": "gsm8k",
    "lang": "en",
    "template_id": "none",
    "messages": [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "Read Wyrrudex. How many coins are left?"},
        {"role": "assistant", "content": "A guess. Answer: 7"},
    ],
    "question": "How many coins are left?",
    "support": ["Prahule had 462 coins and bought several jars."],
    "passages": [
        {"title": "Wyrrudex", "text": "Prahule had 462 coins. The jars cost 2 coins each, and Prahule took several."},
        {"title": "Salkoth", "text": "Salkoth lies on a river."},
    ],
    "answer": "384",
    "aliases": [],
    "slot": {"where": "story", "value": "39", "vague": "several", "wanted": "how many jars Prahule bought"},
    "user_replies": {"gives": "It is 39.", "otherwise": "I do not know that."},
    "needs_clarification": True,
}
CLEAR: dict[str, Any] = {
    **STORY,
    "id": "pool-gsm8k-2",
    "slot": None,
    "user_replies": {"gives": None, "otherwise": "Nothing is missing."},
    "needs_clarification": False,
}
SHIP: dict[str, Any] = {
    **STORY,
    "id": "pool-hotpotqa-1",
    "task": "hotpotqa",
    "answer": "Ithwyn",
    "aliases": ["the river Ithwyn"],
    "slot": {"where": "ask", "value": "Breerimbar", "vague": "a certain ship", "wanted": "the name of that ship"},
    "user_replies": {"gives": "It is Breerimbar.", "otherwise": "I do not know that."},
}
CHINESE: dict[str, Any] = {
    **STORY,
    "id": "pool-gsm8k-3",
    "lang": "zh",
    "slot": {"where": "story", "value": "39", "vague": "一些", "wanted": "瓦诺有多少杯面粉"},
    "user_replies": {"gives": "是39。", "otherwise": "这个我不知道。"},
}


def call(tool: str, **arguments: object) -> str:
    """A tool call as Qwen3 writes it."""
    body = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def qwen_text(message: Mapping[str, Any]) -> str:
    """An assistant message as Qwen3's chat template writes it, without the opening marker."""
    lines = [message["content"]] if message["content"] else []
    for entry in message.get("tool_calls") or ():
        function = entry["function"]
        lines += [
            "<tool_call>",
            f'{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}',
            "</tool_call>",
        ]
    return "\n".join(lines) + "<|im_end|>"
