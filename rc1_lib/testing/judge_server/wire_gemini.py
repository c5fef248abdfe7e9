"""Gemini's `generateContent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.testing.judge_server.connection import Request, Response
from rc1_lib.testing.judge_server.wire import BadRequestError, Marks, Prompt, Reply, properties

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_RATINGS = [{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}]


class Gemini:
    """The protocol of `POST /v1beta/models/{model}:generateContent`."""

    name = "gemini"

    def key(self, request: Request) -> str:
        """The key, from its header or from the address."""
        return request.headers.get("x-goog-api-key") or request.query.get("key", "")

    def prompt(self, body: Mapping[str, Any]) -> Prompt:
        """Read `contents`, `systemInstruction` and `generationConfig`."""
        contents = body.get("contents")
        if not isinstance(contents, list) or not contents or not all(isinstance(one, dict) for one in contents):
            raise BadRequestError("contents is not specified, or is not a list of contents")
        config = body.get("generationConfig") or {}
        if not isinstance(config, dict) or config.get("candidateCount", 1) != 1:
            raise BadRequestError("generationConfig is no object, or asks for more than one candidate")
        most = config.get("maxOutputTokens")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise BadRequestError(f"generationConfig.maxOutputTokens is {most!r}, expected a whole number from 1 up")
        return Prompt(
            system=_text(body.get("systemInstruction")),
            messages=tuple(_text(one) for one in contents),
            dimensions=properties(config.get("responseJsonSchema") or config.get("responseSchema")),
            max_tokens=most,
        )

    def reply(self, reply: Reply, marks: Marks) -> Response:
        """A response with one candidate; with none where the prompt was blocked."""
        body: dict[str, Any] = {}
        if reply.finish == "refusal" and reply.prompt_blocked:
            body["promptFeedback"] = {"blockReason": "SAFETY", "safetyRatings": _RATINGS}
        elif reply.finish == "refusal":
            body["candidates"] = [{"index": 0, "finishReason": "SAFETY", "safetyRatings": _RATINGS}]
        else:
            thought = [{"text": reply.thoughts, "thought": True}] if reply.thoughts else []
            content = {"role": "model", "parts": [*thought, {"text": reply.text}]}
            finish = "MAX_TOKENS" if reply.finish == "length" else "STOP"
            body["candidates"] = [{"index": 0, "content": content, "finishReason": finish}]
        if marks.usage:
            body["usageMetadata"] = _usage(reply)
        return Response.json(200, body | self._marked(marks))

    def empty(self, marks: Marks) -> Response:
        """A response without candidates."""
        return Response.json(200, {"candidates": []} | self._marked(marks))

    def error(self, status: int, message: str, wait: float | None = None) -> Response:
        """`{"error": {...}}`, with `RetryInfo` where there is a time to wait."""
        error: dict[str, Any] = {"code": status, "message": message, "status": _STATUS.get(status, "UNKNOWN")}
        if wait is not None:
            info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait:.9g}s"}
            error["details"] = [info]
        return Response.json(status, {"error": error})

    def models(self, model: str) -> Response:
        """The list of `GET /v1beta/models`."""
        entry = {"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": ["generateContent"]}
        return Response.json(200, {"models": [entry]})

    def _marked(self, marks: Marks) -> dict[str, Any]:
        return {"modelVersion": marks.model} | ({"responseId": marks.reply_id} if marks.reply_id else {})


def _usage(reply: Reply) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "promptTokenCount": reply.tokens_in,
        "totalTokenCount": reply.tokens_in + reply.tokens_out,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": reply.tokens_in}],
    }
    if reply.tokens_text:
        usage["candidatesTokenCount"] = reply.tokens_text
    if reply.tokens_thought:
        usage["thoughtsTokenCount"] = reply.tokens_thought
    return usage


def _text(content: Any) -> str:
    parts = content.get("parts") if isinstance(content, dict) else None
    return "\n".join(str(part.get("text", "")) for part in parts or () if isinstance(part, dict))
