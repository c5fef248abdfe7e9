"""Shared by the tests of the providers: calls, settings, and a server with a scripted response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.config.addresses import KEY_VARIABLE
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.config.judge import JudgeSampling
from rc1_lib.judge.calls import Answer, Ask, CallFailedError
from rc1_lib.judge.providers import open_provider
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.run import published_config
from tests.judge.gateway import Gateway
from tests.judge_server import JudgeServer

NONCE = "0123456789abcdef"
MESSAGES = (
    {"role": "user", "content": "What is the capital of France?"},
    {"role": "assistant", "content": "Paris is the capital of France. Answer: Paris"},
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, **{name: {"type": "number"} for name in DIMENSIONS}},
    "required": ["reason", *DIMENSIONS],
    "additionalProperties": False,
}


@pytest.fixture
def ask() -> Callable[..., Ask]:
    """Make an ask: `ask("attempt-1", "key-1", max_tokens=20)`."""

    def make(attempt_id: str = "attempt-1", idempotency_key: str = "key-1", max_tokens: int = 1024) -> Ask:
        return Ask(
            system=f"You grade. Reply with one JSON object. The dialogue stands in <dialogue-{NONCE}>.",
            user=f"<dialogue-{NONCE}>\n{json.dumps(MESSAGES)}\n</dialogue-{NONCE}>",
            schema=SCHEMA,
            sampling=JudgeSampling(temperature=0.7, max_tokens=max_tokens),
            attempt_id=attempt_id,
            idempotency_key=idempotency_key,
            messages=MESSAGES,
        )

    return make


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., JudgeConfig]:
    """Make settings: `settings("openai", server)`, or with `base_url=...`; the key is set in the environment."""
    published = published_config().judge

    def make(
        name: str,
        server: JudgeServer | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = "sk-planted-0123456789-abcdefghij",
        model: str = "judge-large",
        timeout_s: float = 10.0,
        channel: Any = "schema",
        names: Any = None,
    ) -> JudgeConfig:
        if server is not None:
            base_url = server.gemini_url if name == "gemini" else server.base_url
        if api_key is None:
            monkeypatch.delenv(KEY_VARIABLE, raising=False)
        else:
            monkeypatch.setenv(KEY_VARIABLE, api_key)
        limits = published.limits.model_copy(update={"timeout_s": timeout_s})
        asked = {"model": model, "base_url": base_url, "limits": limits, "channel": channel, "names": names or {}}
        return published.model_copy(update={"provider": name, **asked})

    return make


async def _once(settings: JudgeConfig, ask: Ask) -> Answer:
    provider = open_provider(settings)
    try:
        return await provider.ask(ask)
    finally:
        await provider.aclose()


@pytest.fixture
def call() -> Callable[[JudgeConfig, Ask], Answer]:
    """Make one call on a new event loop."""
    return lambda settings, ask: asyncio.run(_once(settings, ask))


@pytest.fixture
def failed_call() -> Callable[[JudgeConfig, Ask], CallFailedError]:
    """Make one call that has to fail, and return the failure."""

    def make(settings: JudgeConfig, ask: Ask) -> CallFailedError:
        with pytest.raises(CallFailedError) as caught:
            asyncio.run(_once(settings, ask))
        return caught.value

    return make


class Script:
    """A gateway for both protocols that sends one response to every request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self._gateway.requests]

    @property
    def heads(self) -> list[str]:
        return self._gateway.heads

    def url(self, name: str) -> str:
        return self._gateway.url.removesuffix("/v1") if name == "gemini" else self._gateway.url

    def says(self, status: int, body: Any, *headers: str) -> None:
        """Answer with this from now on; a body that is neither text nor bytes is sent as JSON."""
        named = dict(header.split(": ", 1) for header in headers)
        self._gateway.replies = lambda number, sent, received: (status, named, body)


@pytest.fixture
def script(gateway: Gateway) -> Script:
    """A running gateway with a scripted response."""
    return Script(gateway)
