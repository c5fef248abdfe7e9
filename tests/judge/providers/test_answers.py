"""How a provider reads replies (text, model, ids, tokens, finish reason), and what it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.config.judge import JudgeSampling
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome
from rc1_lib.judge.providers import LIVE, open_provider
from rc1_lib.judge.reply import read_answer
from rc1_lib.judge.rubric import DIMENSIONS
from tests.judge_server import Behaviour, FaultKind, running

Call = Callable[[JudgeConfig, Ask], Answer]
Make = Callable[..., Any]
QUICK: dict[str, Any] = {"delay": "zero"}


@pytest.mark.parametrize("name", sorted(LIVE))
def test_a_reply_is_recorded_as_the_provider_reports_it(name: str, ask: Make, settings: Make, call: Call) -> None:
    with running(Behaviour(**QUICK, model="rc1-test-double-7")) as server:
        answer = call(settings(name, server), ask("attempt-9", "key-9"))
    stats = server.stats()
    assert set(json.loads(answer.text)) == {"reason", *DIMENSIONS}
    assert (answer.model, answer.finish, answer.billable) == ("rc1-test-double-7", "stop", True)
    assert answer.request_id
    assert (answer.tokens_in, answer.tokens_out) == (stats.tokens_in, stats.tokens_out)
    assert stats.attempt_ids == ("attempt-9",)
    assert stats.billed_by_key == {"key-9": 1}


@pytest.mark.parametrize("name", ["deepseek_r1", "gemini"])
def test_thoughts_are_separated_and_their_tokens_are_counted(name: str, ask: Make, settings: Make, call: Call) -> None:
    with running(Behaviour(**QUICK, thinking=True)) as server:
        answer = call(settings(name, server), ask())
    grades = read_answer(answer, ask(), DIMENSIONS, "schema")
    assert all(0.0 < grades[dimension] < 1.0 for dimension in DIMENSIONS)
    assert answer.tokens_out == server.stats().tokens_out
    assert answer.thoughts


@pytest.mark.parametrize("name", sorted(LIVE))
def test_refusals_and_truncated_replies_have_different_finishes(
    name: str, ask: Make, settings: Make, call: Call
) -> None:
    with running(Behaviour(**QUICK, faults={FaultKind.REFUSAL: 1.0})) as server:
        declined, blocked = call(settings(name, server), ask()), call(settings(name, server), ask())
        server.behaviour = Behaviour(**QUICK, faults={FaultKind.TRUNCATED: 1.0})
        truncated = call(settings(name, server), ask())
    assert (declined.finish, blocked.finish, truncated.finish) == ("refusal", "refusal", "length")
    assert declined.billable
    assert blocked.billable
    assert truncated.billable


@pytest.mark.parametrize("name", sorted(LIVE))
def test_missing_usage_and_ids_are_not_invented(name: str, ask: Make, settings: Make, call: Call) -> None:
    with running(Behaviour(**QUICK, usage=False, request_ids="none")) as server:
        answer = call(settings(name, server), ask())
    assert (answer.request_id, answer.tokens_in, answer.tokens_out, answer.billable) == ("", 0, 0, False)


def _openai_reply(message: Any, **more: Any) -> dict[str, Any]:
    return {"id": "r-1", "model": "m-1", "choices": [{"message": message, **more}]}


def test_a_text_in_parts_is_read_without_its_thoughts(ask: Make, settings: Make, call: Call, script: Any) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "no"}]}, {"type": "text", "text": "{}"}]
    script.says(200, _openai_reply({"content": parts}, finish_reason="stop"))
    assert call(settings("openai", base_url=script.url("openai")), ask()).text == "{}"


def _tool_call(arguments: Any) -> dict[str, Any]:
    return {"id": "c-1", "type": "function", "function": {"name": "any", "arguments": arguments}}


@pytest.mark.parametrize(
    ("calls", "text"),
    [([_tool_call('{"a": 1}')], '{"a": 1}'), ([_tool_call({"a": 1})], '{"a": 1}'), ([_tool_call("{}")] * 2, "Words.")],
)
def test_a_single_tool_call_is_the_reply(
    calls: Any, text: str, ask: Make, settings: Make, call: Call, script: Any
) -> None:
    script.says(200, _openai_reply({"content": "Words.", "tool_calls": calls}, finish_reason="tool_calls"))
    answer = call(settings("openai", base_url=script.url("openai")), ask())
    assert (answer.text, answer.finish) == (text, "stop")


FINISHES = {
    "stop": "stop", "tool_calls": "stop", None: "stop", "MAX_TOKENS": "length", "content_filter": "refusal",
    "SAFETY": "refusal", "OTHER": "unknown", "new": "unknown", 3: "unknown",
}  # fmt: skip


@pytest.mark.parametrize("reason", FINISHES)
@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_every_finish_reason_maps_to_a_finish(
    name: str, reason: Any, ask: Make, settings: Make, call: Call, script: Any
) -> None:
    gemini = {"candidates": [{"content": {"parts": [{"text": "{}"}]}, "finishReason": reason}]}
    script.says(200, gemini if name == "gemini" else _openai_reply({"content": "{}"}, finish_reason=reason))
    answer = call(settings(name, base_url=script.url(name)), ask())
    assert (answer.finish, answer.reason) == (FINISHES[reason], "" if reason is None else str(reason))


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource"])
def test_a_finish_reason_of_a_failure_under_200_is_a_server_error(
    reason: str, ask: Make, settings: Make, script: Any, failed_call: Any
) -> None:
    script.says(200, _openai_reply({"content": '{"a": 1}'}, finish_reason=reason))
    failure = failed_call(settings("openai", base_url=script.url("openai")), ask())
    assert (failure.fault, failure.status, f"'{reason}'" in failure.detail) == (AttemptOutcome.SERVER_ERROR, 200, True)


def test_gemini_counts_thought_tokens_and_does_not_continue_a_reply(
    ask: Make, settings: Make, call: Call, script: Any
) -> None:
    parts = [{"text": "no", "thought": True}, {"text": '{"a": '}, {"text": "1}"}]
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    candidate = {"content": {"parts": parts}, "finishReason": "CONTINUATION", "continuationToken": "QUJD"}
    script.says(200, {"candidates": [candidate], "usageMetadata": usage, "responseId": "r-1"})
    answer = call(settings("gemini", base_url=script.url("gemini")), ask())
    assert (answer.text, answer.finish) == ('{"a": 1}', "length")
    assert (answer.tokens_in, answer.tokens_out, answer.request_id) == (11, 12, "r-1")
    assert len(script.bodies) == 1


def test_a_null_parameter_is_not_sent_and_parameters_can_be_renamed(
    ask: Make, settings: Make, call: Call, script: Any
) -> None:
    script.says(200, _openai_reply({"content": "{}"}))
    names = {"max_tokens": "max_output", "system": "user", "top_p": "nucleus"}
    call(
        settings("openai", base_url=script.url("openai"), names=names, channel="tool"), ask("a-1", "k-1", max_tokens=99)
    )
    bare = replace(ask(), sampling=JudgeSampling(temperature=None, max_tokens=None))
    call(settings("openai", base_url=script.url("openai")), bare)
    script.says(200, {"candidates": [{"content": {"parts": [{"functionCall": {"args": {"a": 1}}}]}}]})
    gemini = settings("gemini", base_url=script.url("gemini"), names={"system": "user"}, channel="tool")
    assert json.loads(call(gemini, bare).text) == {"a": 1}
    renamed, without_parameters, gemini_body = script.bodies
    assert (renamed["max_output"], renamed["nucleus"], renamed["temperature"]) == (99, 1.0, 0.7)
    assert not {"max_tokens", "top_p", "response_format"} & set(renamed)
    assert [message["role"] for message in renamed["messages"]] == ["user"]
    assert renamed["messages"][0]["content"].startswith("You grade.")
    assert renamed["tools"][0]["function"]["parameters"]["required"] == ["reason", *DIMENSIONS]
    assert renamed["tool_choice"]["function"]["name"] == renamed["tools"][0]["function"]["name"]
    assert set(without_parameters) == {"model", "messages", "response_format"}
    assert gemini_body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"
    assert "systemInstruction" not in gemini_body
    assert not gemini_body.get("generationConfig")


@pytest.mark.parametrize(
    ("host", "name"),
    [("mine.openai.azure.com", "max_completion_tokens"), ("mine.cognitiveservices.azure.com", "max_completion_tokens"),
     ("gateway.example.com", "max_tokens")],
)  # fmt: skip
def test_azure_hosts_get_max_completion_tokens(host: str, name: str, settings: Make) -> None:
    made = open_provider(settings("openai", base_url=f"https://{host}/v1"))
    assert made._config.names["max_tokens"] == name  # type: ignore[attr-defined]
    asyncio.run(made.aclose())


def test_without_an_api_key_no_key_header_is_sent(
    ask: Make, settings: Make, call: Call, script: Any, failed_call: Any
) -> None:
    script.says(200, _openai_reply({"content": "{}"}))
    call(settings("openai", base_url=script.url("openai"), api_key=None), ask())
    script.says(401, {"error": {"message": "Missing bearer token"}})
    for name in ("openai", "gemini"):
        failure = failed_call(settings(name, base_url=script.url(name), api_key=None), ask())
        assert "SCORER_API_KEY" in failure.detail
    assert not any(
        word in head.lower() for head in script.heads for word in ("authorization", "no-key", "goog-api-key")
    )


def test_openai_request_has_sampling_schema_and_ids(ask: Make, settings: Make, call: Call, script: Any) -> None:
    script.says(200, _openai_reply({"content": "{}"}))
    call(settings("openai", base_url=script.url("openai"), model="judge-large"), ask("a-1", "k-1", max_tokens=99))
    call(settings("openai", base_url=script.url("openai"), channel="text"), ask())
    first, second = script.bodies
    assert (first["model"], first["temperature"], first["top_p"], first["max_tokens"]) == ("judge-large", 0.7, 1.0, 99)
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert first["response_format"]["json_schema"]["strict"] is True
    assert first["response_format"]["json_schema"]["schema"]["required"] == ["reason", *DIMENSIONS]
    assert "response_format" not in second
    assert "x-client-request-id: a-1\r\n" in script.heads[0].lower()
    assert "idempotency-key: k-1\r\n" in script.heads[0].lower()


def test_gemini_request_has_sampling_schema_and_ids(ask: Make, settings: Make, call: Call, script: Any) -> None:
    script.says(200, {"candidates": [{"content": {"parts": [{"text": "{}"}]}, "finishReason": "STOP"}]})
    call(settings("gemini", base_url=script.url("gemini"), model="gemini-x"), ask("a-1", "k-1", max_tokens=99))
    call(settings("gemini", base_url=script.url("gemini"), channel="text"), ask())
    config = script.bodies[0]["generationConfig"]
    assert (config["temperature"], config["topP"], config["maxOutputTokens"]) == (0.7, 1.0, 99)
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["required"] == ["reason", *DIMENSIONS]
    assert "responseJsonSchema" not in script.bodies[1]["generationConfig"]
    assert script.bodies[0]["systemInstruction"]["parts"][0]["text"].startswith("You grade.")
    assert "/v1beta/models/gemini-x:generateContent" in script.heads[0]
    assert "idempotency-key: k-1\r\n" in script.heads[0].lower()
    assert "x-client-request-id: k-1" not in script.heads[0].lower()
