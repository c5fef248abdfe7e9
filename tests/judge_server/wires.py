"""The test double's two protocols: OpenAI's chat completions and Gemini's `generateContent`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from tests.judge_server.model import REFUSED, Prompt, Reply

FINGERPRINT = "rc1-test-double"
"""`system_fingerprint` of every reply."""
_RATINGS = [{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}]
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class BadRequestError(Exception):
    """A request that breaks the protocol, or asks for something that the test double does not support."""


@dataclass(frozen=True, slots=True)
class Marks:
    """A response's metadata: model version, reply id (None: no id), whether it reports usage, or is a tool call."""

    model: str
    reply_id: str | None
    usage: bool
    by_tool: bool = False


class OpenAI:
    """The protocol of `POST /v1/chat/completions`, as OpenAI, llama.cpp and vLLM serve it."""

    name = "openai"

    def key(self, request: Request) -> str:
        """Return the bearer token."""
        return str(request.headers.get("authorization", "")).removeprefix("Bearer ").strip()

    def prompt(self, body: Mapping[str, Any]) -> Prompt:
        """Parse `messages`, `response_format` and the token limit."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
            raise BadRequestError("'messages' is missing or is not a list of messages")
        if body.get("stream") or body.get("n", 1) != 1:
            raise BadRequestError("the test double neither streams nor gives more than one choice")
        texts = [(item.get("role") in ("system", "developer"), _content(item.get("content"))) for item in messages]
        tool = None
        match body.get("tools"):
            case [{"function": {"parameters": dict() as schema}}, *_]:
                tool = schema
        asked_format = body.get("response_format")
        wrapped = asked_format.get("json_schema") if isinstance(asked_format, dict) else None
        return Prompt(
            system="\n".join(text for instructs, text in texts if instructs),
            messages=tuple(text for instructs, text in texts if not instructs),
            dimensions=_properties(wrapped.get("schema") if isinstance(wrapped, dict) else tool),
            by_tool=tool is not None,
            max_tokens=_limit("max_tokens", body.get("max_completion_tokens", body.get("max_tokens"))),
        )

    def reply(self, reply: Reply, marks: Marks) -> JSONResponse:
        """Return a chat completion with one choice; a blocked prompt shows only in `finish_reason`."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.thoughts:
            message |= {"content": f"<think>\n{reply.thoughts}\n</think>\n\n{reply.text}"}
            message |= {"reasoning_content": reply.thoughts}
        if marks.by_tool:
            call = {"id": "call_1", "type": "function", "function": {"name": "grades", "arguments": reply.text}}
            message |= {"content": None, "tool_calls": [call]}
        if reply.finish == "refusal":
            message |= {"content": None, "refusal": None if reply.prompt_blocked else REFUSED}
        finish = "content_filter" if reply.prompt_blocked else "length" if reply.finish == "length" else "stop"
        body = _completion([{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}], marks)
        if marks.usage:
            body["usage"] = {
                "prompt_tokens": reply.tokens_in,
                "completion_tokens": reply.tokens_out,
                "total_tokens": reply.tokens_in + reply.tokens_out,
                "completion_tokens_details": {"reasoning_tokens": reply.tokens_thought},
            }
        return JSONResponse(body, headers={"x-request-id": f"req_{marks.reply_id}"} if marks.reply_id else None)

    def empty(self, marks: Marks) -> JSONResponse:
        """Return a chat completion without choices."""
        return JSONResponse(_completion([], marks))

    def error(self, status: int, message: str, wait: float | None = None, *, code: str | None = None) -> JSONResponse:
        """Return `{"error": {...}}`; how long to wait is only in the header."""
        code = code or {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status)
        kind = "requests" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
        return JSONResponse({"error": {"message": message, "type": kind, "code": code}}, status)


class Gemini:
    """The protocol of `POST /v1beta/models/{model}:generateContent`."""

    name = "gemini"

    def key(self, request: Request) -> str:
        """Return the key from its header or from the query."""
        return str(request.headers.get("x-goog-api-key") or request.query_params.get("key", ""))

    def prompt(self, body: Mapping[str, Any]) -> Prompt:
        """Parse `contents`, `systemInstruction` and `generationConfig`."""
        contents = body.get("contents")
        if not isinstance(contents, list) or not contents or not all(isinstance(item, dict) for item in contents):
            raise BadRequestError("contents is missing, or is not a list of contents")
        config = body.get("generationConfig") or {}
        if not isinstance(config, dict) or config.get("candidateCount", 1) != 1:
            raise BadRequestError("generationConfig is not an object, or asks for more than one candidate")
        tool = None
        match body.get("tools"):
            case [{"functionDeclarations": [{"parametersJsonSchema": dict() as schema}, *_]}, *_]:
                tool = schema
        return Prompt(
            system=_parts(body.get("systemInstruction")),
            messages=tuple(_parts(item) for item in contents),
            dimensions=_properties(config.get("responseJsonSchema") or config.get("responseSchema") or tool),
            by_tool=tool is not None,
            max_tokens=_limit("generationConfig.maxOutputTokens", config.get("maxOutputTokens")),
        )

    def reply(self, reply: Reply, marks: Marks) -> JSONResponse:
        """Return a response with one candidate, or none if the prompt was blocked."""
        body: dict[str, Any] = {}
        if reply.prompt_blocked:
            body["promptFeedback"] = {"blockReason": "SAFETY", "safetyRatings": _RATINGS}
        elif reply.finish == "refusal":
            body["candidates"] = [{"index": 0, "finishReason": "SAFETY", "safetyRatings": _RATINGS}]
        else:
            thought = [{"text": reply.thoughts, "thought": True}] if reply.thoughts else []
            part: dict[str, Any] = {"text": reply.text}
            if marks.by_tool:
                part = {"functionCall": {"name": "grades", "args": json.loads(reply.text)}}
            content = {"role": "model", "parts": [*thought, part]}
            finish = "MAX_TOKENS" if reply.finish == "length" else "STOP"
            body["candidates"] = [{"index": 0, "content": content, "finishReason": finish}]
        if marks.usage:
            body["usageMetadata"] = _usage(reply)
        return JSONResponse(body | _marked(marks))

    def empty(self, marks: Marks) -> JSONResponse:
        """Return a response without candidates."""
        return JSONResponse({"candidates": []} | _marked(marks))

    def error(self, status: int, message: str, wait: float | None = None, *, code: str | None = None) -> JSONResponse:
        """Return `{"error": {...}}`, with `RetryInfo` if `wait` is given."""
        error: dict[str, Any] = {"code": status, "message": message, "status": _STATUS.get(status, "UNKNOWN")}
        del code  # Google's errors have them only in the message
        if wait is not None:
            info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait:.9g}s"}
            error["details"] = [info]
        return JSONResponse({"error": error}, status)


Wire = OpenAI | Gemini
"""The server's side of a protocol."""


def _completion(choices: list[dict[str, Any]], marks: Marks) -> dict[str, Any]:
    return {
        **({"id": f"chatcmpl-{marks.reply_id}"} if marks.reply_id else {}),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": marks.model,
        "choices": choices,
        "system_fingerprint": FINGERPRINT,
    }


def _marked(marks: Marks) -> dict[str, Any]:
    return {"modelVersion": marks.model} | ({"responseId": marks.reply_id} if marks.reply_id else {})


def _usage(reply: Reply) -> dict[str, Any]:
    written = {"candidatesTokenCount": reply.tokens_text, "thoughtsTokenCount": reply.tokens_thought}
    return {
        "promptTokenCount": reply.tokens_in,
        "totalTokenCount": reply.tokens_in + reply.tokens_out,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": reply.tokens_in}],
        **{name: count for name, count in written.items() if count},
    }


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _parts(content: Any) -> str:
    return _content(content.get("parts") if isinstance(content, dict) else None)


def _limit(name: str, most: Any) -> int | None:
    if most is not None and (not isinstance(most, int) or most < 1):
        raise BadRequestError(f"'{name}' is {most!r}, expected a whole number of at least 1")
    return most


def _properties(schema: Any) -> tuple[str, ...] | None:
    """Return the dimensions in a JSON schema: all properties but the reason."""
    named = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(name for name in named if name != "reason") if isinstance(named, dict) else None
