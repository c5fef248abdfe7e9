"""The OpenAI protocol: OpenAI itself, servers that speak it (llama.cpp, vLLM), and DeepSeek's reasoning models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import openai
from openai.types.chat import ChatCompletionMessageParam, completion_create_params

from rc1_lib.judge.calls import Answer, Ask, CallFailedError, CallFault, Finish
from rc1_lib.judge.providers.exchange import HttpProvider, MalformedError, Received, count_of, text_of
from rc1_lib.judge.providers.settings import Endpoint, ProviderSettings

_OPENAI_DOMAINS = ("openai.com", "openai.azure.com")


@dataclass(frozen=True, slots=True)
class Dialect:
    """In what the speakers of the protocol differ.

    Attributes:
        schemas: whether the reply's JSON schema can be enforced; otherwise only that it is JSON.
        thinks: whether the reply's text may start with the model's thinking.
    """

    schemas: bool
    thinks: bool


OPENAI = Dialect(schemas=True, thinks=False)
DEEPSEEK = Dialect(schemas=False, thinks=True)
"""DeepSeek's API takes `response_format` of type `json_object`, for reasoning models too, and rejects `json_schema`
(api-docs.deepseek.com/guides/json_mode; the error is "This response_format type is unavailable now"). Its JSON mode
needs the word JSON in the prompt and sometimes gives a blank reply, which counts as a bad reply. While they think, its
models ignore the temperature (api-docs.deepseek.com/guides/thinking_mode)."""


class OpenAIProtocol(HttpProvider):
    """A provider that speaks the OpenAI protocol."""

    raised: ClassVar[tuple[type[Exception], ...]] = (openai.APIError,)

    def __init__(self, settings: ProviderSettings, endpoint: Endpoint, dialect: Dialect) -> None:
        super().__init__(settings, endpoint)
        self._dialect = dialect
        self._is_openai = is_openai(endpoint.host)
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key,
            base_url=endpoint.base_url,
            timeout=settings.timeout_s,
            max_retries=0,
            http_client=self._http,
        )
        if not self._is_openai:
            # Read from the environment by the client; no business of anybody but OpenAI.
            self._client.organization = self._client.project = None

    async def _send(self, ask: Ask) -> Received:
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": ask.system},
            {"role": "user", "content": ask.user},
        ]
        # OpenAI's reasoning models reject max_tokens, and older servers know nothing else.
        limit = ask.sampling.max_tokens
        raw = await self._client.chat.completions.with_raw_response.create(
            model=self._settings.model,
            messages=messages,
            temperature=ask.sampling.temperature,
            top_p=ask.sampling.top_p,
            max_tokens=openai.omit if self._is_openai else limit,
            max_completion_tokens=limit if self._is_openai else openai.omit,
            response_format=self._response_format(ask.schema) if self._settings.structured else openai.omit,
            extra_headers={"X-Client-Request-Id": ask.attempt_id, "Idempotency-Key": ask.idempotency_key},
        )
        headers = {name.lower(): value for name, value in raw.http_response.headers.items()}
        return Received(headers, raw.http_response.content)

    def _response_format(self, schema: Mapping[str, Any]) -> completion_create_params.ResponseFormat:
        if not self._dialect.schemas:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "grades", "strict": True, "schema": dict(schema)}}

    def _read(self, body: Mapping[str, Any]) -> Answer:
        match body.get("choices"):
            case [{"message": dict() as message} as choice, *_]:
                pass
            case _:
                raise MalformedError("the response holds no choices")
        content, refusal = message.get("content"), text_of(message.get("refusal"))
        if content is not None and not isinstance(content, str):
            raise MalformedError("the reply's content is no text")
        text, finish = content or "", self._finish(choice.get("finish_reason"))
        if self._dialect.thinks:
            text, finish = drop_thinking(text, finish)
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
        )

    def _finish(self, reason: Any) -> Finish:
        match reason:
            case "length":
                return "length"
            case "content_filter":
                return "refusal"
            case "insufficient_system_resource":
                # DeepSeek's word for a reply that it broke off, under HTTP 200.
                raise CallFailedError(
                    CallFault.SERVER_ERROR,
                    f"{self._endpoint.host} broke the reply off for want of resources",
                    status=200,
                )
            case _:
                return "stop"


def is_openai(host: str) -> bool:
    """Whether a host is OpenAI's own, rather than one that speaks its protocol."""
    return any(host == domain or host.endswith(f".{domain}") for domain in _OPENAI_DOMAINS)


def drop_thinking(text: str, finish: Finish) -> tuple[str, Finish]:
    """A reasoning model's reply without its thinking.

    Everything up to the last `</think>` is dropped: chat templates often leave out the opening tag. What follows an
    opening tag without an end is thinking that was cut off, so that there is no reply.
    """
    reply = text.rpartition("</think>")[2]
    before, opening, _ = reply.partition("<think>")
    return before.strip(), "length" if opening and finish == "stop" else finish
