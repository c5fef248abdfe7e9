"""Gemini, through google-genai's asynchronous client."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from google import genai
from google.genai import errors, types
from google.genai.client import DebugConfig

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import ConfigError
from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError, Finish, finish_of
from rc1_lib.judge.providers import Endpoint
from rc1_lib.judge.providers.exchange import TOP_P, HttpProvider, MalformedError, Received, count_of, text_of, trust

_MODEL = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/:\-]*")
_TOOL = "grades"


class Gemini(HttpProvider):
    """The Gemini Developer API, or a server that implements it."""

    # The client parses error bodies itself and does not catch what the parser raises.
    raised: ClassVar[tuple[type[Exception], ...]] = (errors.APIError, UnicodeDecodeError, RecursionError)

    def __init__(self, config: JudgeConfig, endpoint: Endpoint) -> None:
        if not _MODEL.fullmatch(endpoint.model):
            raise ConfigError(
                "judge.model is not a valid Gemini model name; expected one like gemini-2.5-flash, without spaces, "
                "'..', '?' or '&'."
            )
        if others := config.names.keys() - {"system"}:
            raise ConfigError(
                f"judge.names renames {', '.join(sorted(others))}, but Gemini's parameters cannot be renamed; keep "
                "only {system: user} in judge.names, and set a parameter that the model does not accept to null."
            )
        super().__init__(config, endpoint)
        self._client = genai.Client(
            vertexai=False,
            api_key=endpoint.key,
            # By default the environment can make the client replay recorded responses; those are not scores.
            debug_config=DebugConfig(client_mode=None, replays_directory=None, replay_id=None),
            http_options=types.HttpOptions(
                base_url=endpoint.base_url,
                api_version="v1beta",
                timeout=math.ceil(config.limits.timeout_s * 1000.0),
                # One attempt; passing our own client also turns off the SDK's implicit retry (aiohttp's).
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_async_client=self._http,
                # For further clients that the SDK opens, which RC1 does not use.
                client_args={"verify": trust()},
                async_client_args={"ssl": trust()},
            ),
        )

    async def _send(self, ask: Ask) -> Received:
        structured, merged = self._config.channel == "schema", self._config.names.get("system") == "user"
        response = await self._client.aio.models.generate_content(
            model=self._endpoint.model,
            contents=f"{ask.system}\n\n{ask.user}" if merged else ask.user,
            config=types.GenerateContentConfig(
                system_instruction=None if merged else ask.system,
                temperature=ask.sampling.temperature,
                top_p=None if ask.sampling.temperature is None else TOP_P,
                max_output_tokens=ask.sampling.max_tokens,
                response_mime_type="application/json" if structured else None,
                response_json_schema=dict(ask.schema) if structured else None,
                **_tools(ask.schema) if self._config.channel == "tool" else {},
                http_options=types.HttpOptions(
                    headers={"X-Client-Request-Id": ask.attempt_id, "Idempotency-Key": ask.idempotency_key}
                ),
                # Both would send further requests that RC1 cannot count.
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                automatic_continuation=False,
                # The SDK's parser drops unknown fields with a warning; RC1 needs to see them.
                should_return_http_response=True,
            ),
        )
        http = response.sdk_http_response
        headers = {name.lower(): value for name, value in ((http and http.headers) or {}).items()}
        return Received(headers, ((http and http.body) or "").encode())

    def _read(self, body: Mapping[str, Any]) -> Answer:
        match body:
            case {"candidates": [dict() as candidate, *_]}:
                text, thoughts = _text(candidate)
                finish, reason = self._finish(candidate.get("finishReason"))
            case {"promptFeedback": {"blockReason": str() as reason}}:
                text, thoughts, finish = f"the prompt was blocked: {reason}", "", "refusal"
            case _:
                raise MalformedError("the response holds no candidates")
        usage = body.get("usageMetadata")
        usage = usage if isinstance(usage, dict) else {}
        tokens_in = count_of(usage.get("promptTokenCount"))
        tokens_out = count_of(usage.get("candidatesTokenCount")) + count_of(usage.get("thoughtsTokenCount"))
        return Answer(
            text=text,
            model=text_of(body.get("modelVersion")),
            request_id=text_of(body.get("responseId")),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            billable=tokens_in + tokens_out > 0,
            finish=finish,
            reason=reason,
            thoughts=thoughts,
        )

    def _finish(self, reason: Any) -> tuple[Finish, str]:
        if reason == "PUP_LIMITED_DISABLED":
            message = f"{self._endpoint.host} has limited or disabled the account for breaches of its use policy"
            raise CallFailedError(AttemptOutcome.REJECTED, message, status=200)
        return finish_of(reason)

    async def aclose(self) -> None:
        """Close the connections."""
        await super().aclose()
        self._client.close()


def _tools(schema: Mapping[str, Any]) -> dict[str, Any]:
    grade = types.FunctionDeclaration(name=_TOOL, description="Give the grades.", parameters_json_schema=dict(schema))
    mode = types.FunctionCallingConfigMode.ANY
    calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=[_TOOL])
    return {
        "tools": [types.Tool(function_declarations=[grade])],
        "tool_config": types.ToolConfig(function_calling_config=calling),
    }


def _text(candidate: Mapping[str, Any]) -> tuple[str, str]:
    """Return the candidate's text, or the arguments of its only function call, and its thoughts; empty if absent."""
    content = candidate.get("content")
    if content is None:
        return "", ""
    parts = content.get("parts", []) if isinstance(content, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise MalformedError("the candidate's content holds no parts")
    calls = [call["args"] for part in parts if isinstance(call := part.get("functionCall"), dict) and "args" in call]
    text, thoughts = (
        "".join(text_of(part.get("text")) for part in parts if (part.get("thought") is True) is thought)
        for thought in (False, True)
    )
    return json.dumps(calls[0]) if len(calls) == 1 else text, thoughts
