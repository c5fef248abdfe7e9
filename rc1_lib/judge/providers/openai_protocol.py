"""The OpenAI protocol: OpenAI itself, compatible servers (llama.cpp, vLLM), and DeepSeek's reasoning models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import openai
from openai.types.chat import ChatCompletionMessageParam

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.config.judge import Renamed
from rc1_lib.judge.calls import Answer, Ask, finish_of
from rc1_lib.judge.providers import Endpoint
from rc1_lib.judge.providers.exchange import TOP_P, HttpProvider, MalformedError, Received, count_of, text_of

_OWN_ACCOUNT = ("openai.com", "openai.azure.com")
_RENAMED_LIMIT = (*_OWN_ACCOUNT, "cognitiveservices.azure.com")
"""Hosts whose reasoning models reject `max_tokens`; older servers know nothing else. `judge.names` overrides this."""
_TOOL = "grades"


class OpenAIProtocol(HttpProvider):
    """A provider with the OpenAI protocol."""

    raised: ClassVar[tuple[type[Exception], ...]] = (openai.APIError,)

    def __init__(self, config: JudgeConfig, endpoint: Endpoint, *, schemas: bool = True) -> None:
        """Open the client.

        Args:
            config: `judge`.
            endpoint: address and key.
            schemas: whether the server supports JSON schemas; otherwise channel `schema` only enforces JSON.
        """
        limit = "max_completion_tokens" if is_of(endpoint.host, _RENAMED_LIMIT) else "max_tokens"
        config = config.model_copy(update={"names": {"max_tokens": limit, **config.names}})
        super().__init__(config, endpoint)
        self._schemas = schemas
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key,
            base_url=endpoint.base_url,
            timeout=config.limits.timeout_s,
            max_retries=0,
            http_client=self._http,
        )
        if not is_of(endpoint.host, _OWN_ACCOUNT):
            # The client reads both from the environment; only OpenAI may see them.
            self._client.organization = self._client.project = None

    async def _send(self, ask: Ask) -> Received:
        names, sampling = self._config.names, ask.sampling
        given: dict[Renamed, float | None] = {
            "temperature": sampling.temperature, "top_p": None if sampling.temperature is None else TOP_P,
            "max_tokens": sampling.max_tokens,
        }  # fmt: skip
        more = {names.get(name, name): value for name, value in given.items() if value is not None}
        raw = await self._client.chat.completions.with_raw_response.create(
            model=self._endpoint.model,
            messages=self._messages(ask),
            extra_body=more | self._channel(ask.schema),
            extra_headers={"X-Client-Request-Id": ask.attempt_id, "Idempotency-Key": ask.idempotency_key},
        )
        headers = {name.lower(): value for name, value in raw.http_response.headers.items()}
        return Received(headers, raw.http_response.content)

    def _messages(self, ask: Ask) -> list[ChatCompletionMessageParam]:
        match self._config.names.get("system", "system"):
            case "user":  # models without a system role often reject two user messages in a row
                return [{"role": "user", "content": f"{ask.system}\n\n{ask.user}"}]
            case "developer":
                return [{"role": "developer", "content": ask.system}, {"role": "user", "content": ask.user}]
            case _:
                return [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}]

    def _channel(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        match self._config.channel:
            case "schema" if self._schemas:
                strict = {"name": _TOOL, "strict": True, "schema": dict(schema)}
                return {"response_format": {"type": "json_schema", "json_schema": strict}}
            case "schema":
                return {"response_format": {"type": "json_object"}}
            case "tool":
                function = {"name": _TOOL, "description": "Give the grades.", "parameters": dict(schema)}
                return {
                    "tools": [{"type": "function", "function": function}],
                    "tool_choice": {"type": "function", "function": {"name": _TOOL}},
                }
            case "text":
                return {}

    def _read(self, body: Mapping[str, Any]) -> Answer:
        match body.get("choices"):
            case [{"message": dict() as message} as choice, *_]:
                pass
            case _:
                raise MalformedError("the response holds no choices")
        finish, reason = finish_of(choice.get("finish_reason"))
        text, refusal = _text(message), text_of(message.get("refusal"))
        if refusal:
            text, finish = refusal, "refusal"
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens_in, tokens_out = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
        return Answer(
            text=text,
            model=text_of(body.get("model")),
            request_id=text_of(body.get("id")),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            billable=tokens_in + tokens_out > 0,
            finish=finish,
            reason=reason,
            thoughts=text_of(message.get("reasoning_content")) or text_of(message.get("reasoning")),
        )


def _text(message: Mapping[str, Any]) -> str:
    """Return the arguments of the only tool call, otherwise the content; empty without either.

    Several calls would be several replies, so all of them are ignored.
    """
    match message.get("tool_calls"):
        case [{"function": {"arguments": str() as arguments}}]:
            return arguments
        case [{"function": {"arguments": dict() as arguments}}]:
            return json.dumps(arguments)
    match message.get("content"):
        case None:
            return ""
        case str() as content:
            return content
        case list() as parts if parts and all(isinstance(part, dict) and "type" in part for part in parts):
            return "".join(text_of(part.get("text")) for part in parts if part["type"] == "text")
    raise MalformedError("the reply's content is not text")


def is_of(host: str, domains: tuple[str, ...]) -> bool:
    """Whether a host is one of these domains or a subdomain."""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
