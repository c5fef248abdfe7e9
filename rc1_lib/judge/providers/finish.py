"""Why a reply ended, in each provider's own word, and what that makes of it: one table for all protocols.

Sources: OpenAI, Azure, Anthropic, Gemini, Mistral, Cohere, DeepSeek and Zhipu document their words; vLLM, SGLang, TGI,
Ollama and OpenRouter show theirs in their source. A word that is not here is `unknown`, and the reply is unscored by
that name: better a judge that has to be looked at than half a reply that counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rc1_lib.judge.calls import Finish

_WORDS: dict[Finish, str] = {
    "stop": "stop eos eos_token stop_sequence end_turn complete completed tool_calls tool_call tool_use function_call",
    "length": "length max_tokens model_length model_context_window_exceeded context_length_exceeded max_output_tokens"
    " continuation pause_turn",
    "refusal": "content_filter content_filtered refusal safety recitation language blocklist prohibited_content spii"
    " escalation sensitive error_toxic guardrail_intervened image_safety model_armor",
    "fault": "error error_limit abort aborted cancelled timeout network_error insufficient_system_resource"
    " malformed_response",
}
FINISHED: Mapping[str, Finish] = MappingProxyType(
    {word: finish for finish, words in _WORDS.items() for word in words.split()}
)
"""A provider's word, in lower case -> how the reply ended."""


def finish_of(reason: Any) -> tuple[Finish, str]:
    """How a reply ended, and the word that was given for it.

    A reply without any word counts as whole: simple servers leave it out, and one that is not whole is no JSON.
    """
    if reason is None or reason == "":
        return "stop", ""
    word = str(reason)[:40]
    return FINISHED.get(word.lower(), "unknown"), word
