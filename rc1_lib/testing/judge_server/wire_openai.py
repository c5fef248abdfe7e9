"""OpenAI's chat completions, as OpenAI, llama.cpp and vLLM serve them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rc1_lib.testing.judge_server.connection import Request, Response
from rc1_lib.testing.judge_server.wire import BadRequestError, Marks, Prompt, Reply, properties

FINGERPRINT = "rc1-test-double"
"""`system_fingerprint` of every reply."""
REFUSED = "I'm sorry, but I can't help with that request."
_TYPES = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error", 429: "requests"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class OpenAI:
    """The protocol of `POST /v1/chat/completions`."""

    name = "openai"

    def key(self, request: Request) -> str:
        """The bearer token."""
        return request.headers.get("authorization", "").removeprefix("Bearer ").strip()

    def prompt(self, body: Mapping[str, Any]) -> Prompt:
        """Read `messages`, `response_format` and the limit of tokens."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            raise BadRequestError("'messages' is missing or is not a list of messages")
        if body.get("stream") or body.get("n", 1) != 1:
            raise BadRequestError("the test double neither streams nor gives more than one choice")
        texts = [(one.get("role"), _text(one.get("content"))) for one in messages]
        most = body.get("max_completion_tokens", body.get("max_tokens"))
        if most is not None and (not isinstance(most, int) or most < 1):
            raise BadRequestError(f"'max_tokens' is {most!r}, expected a whole number from 1 up")
        asked_format = body.get("response_format")
        wrapped = asked_format.get("json_schema") if isinstance(asked_format, dict) else None
        return Prompt(
            system="\n".join(text for role, text in texts if role in ("system", "developer")),
            messages=tuple(text for role, text in texts if role not in ("system", "developer")),
            dimensions=properties(wrapped.get("schema")) if isinstance(wrapped, dict) else None,
            max_tokens=most,
        )

    def reply(self, reply: Reply, marks: Marks) -> Response:
        """A chat completion with one choice; a blocked prompt shows in `finish_reason` alone."""
        refused = reply.finish == "refusal"
        declined = REFUSED if refused and not reply.prompt_blocked else None
        raw = f"<think>\n{reply.thoughts}\n</think>\n\n{reply.text}" if reply.thoughts else reply.text
        message = {"role": "assistant", "content": None if refused else raw, "refusal": declined}
        if reply.thoughts:
            message["reasoning_content"] = reply.thoughts
        finish = "content_filter" if reply.prompt_blocked else "length" if reply.finish == "length" else "stop"
        body = self._completion([{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}], marks)
        if marks.usage:
            body["usage"] = {
                "prompt_tokens": reply.tokens_in,
                "completion_tokens": reply.tokens_out,
                "total_tokens": reply.tokens_in + reply.tokens_out,
                "completion_tokens_details": {"reasoning_tokens": reply.tokens_thought},
            }
        return Response.json(200, body, {"x-request-id": f"req_{marks.reply_id}"} if marks.reply_id else None)

    def empty(self, marks: Marks) -> Response:
        """A chat completion without choices."""
        return Response.json(200, self._completion([], marks))

    def error(self, status: int, message: str, wait: float | None = None) -> Response:
        """`{"error": {...}}`; how long to wait stands in the header alone."""
        error = {
            "message": message,
            "type": _TYPES.get(status, "server_error"),
            "param": None,
            "code": _CODES.get(status),
        }
        return Response.json(status, {"error": error})

    def models(self, model: str) -> Response:
        """The list of `GET /v1/models`."""
        entry = {"id": model, "object": "model", "created": int(time.time()), "owned_by": FINGERPRINT}
        return Response.json(200, {"object": "list", "data": [entry]})

    def _completion(self, choices: list[dict[str, Any]], marks: Marks) -> dict[str, Any]:
        named = {"id": f"chatcmpl-{marks.reply_id}"} if marks.reply_id else {}
        return {
            **named,
            "object": "chat.completion",
            "created": int(time.time()),
            "model": marks.model,
            "choices": choices,
            "system_fingerprint": FINGERPRINT,
        }


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
