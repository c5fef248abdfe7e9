"""A vLLM server, through OpenAI's client: what it serves, loading adapters, and sampling turns as tokens.

The client sends a lost request again; a sampled turn has a seed, so that does not change what is sampled.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

from rc1_lib.config.addresses import VLLM_KEY, read_address
from rc1_lib.config.episodes import VLLM
from rc1_lib.errors import ConfigError
from rc1_lib.masking import conceal, secrets
from rc1_lib.training.rollout.decoder import RolloutError

TIMEOUT_S = 120.0
"""Seconds that the server may be silent: a turn of a large model on a busy GPU takes a fraction."""
RETRIES = 2
"""How often a failing request is sent again."""
_LONGEST_QUOTE = 300
_SLACK = 1e-3
"""How far above 0 rounding may take a log-probability."""
_PRINTABLE = re.compile(r"[!-~]+")
GO_ON = "This step is discarded: fix the server, and run the same command again to resume from the newest checkpoint"
"""End of messages about faults that occur during training."""


class VLLMError(RolloutError):
    """The server is gone, rejects a request, or sends an invalid answer."""


@dataclass(frozen=True, slots=True)
class Served:
    """The policy with which a server was started: its name in requests, where the server found it, its context."""

    name: str
    root: str
    context: int
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A request for the tokens of one turn.

    Attributes:
        prompt: all tokens before it.
        most: maximum number of tokens.
        end_id: token that ends it; None always requests `most` tokens.
        temperature: 0 means greedy.
    """

    prompt: Sequence[int]
    most: int
    end_id: int | None
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class SampledTurn:
    """A turn: its tokens, including the one that ends it, and their log-probabilities at sampling."""

    ids: list[int]
    logprobs: list[float]


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a server.

    Attributes:
        host: its host, without anything secret, for messages.
        timeout_s: seconds that it may be silent.
        retries: how often a failing request is sent again.
        key: sent with every request; None if the server needs none.
    """

    base_url: str = field(repr=False)
    host: str
    timeout_s: float
    retries: int
    key: str | None = field(repr=False)


def access_of(settings: VLLM) -> Access:
    """Return the configured server, with the key from the environment.

    Raises:
        ConfigError: if the key cannot be sent in a header; the message does not show it.
    """
    assert settings.base_url is not None, "a configuration with sampler vllm has an address"
    key = os.environ.get(VLLM_KEY) or None
    if key is not None and not _PRINTABLE.fullmatch(key):
        raise ConfigError(f"{VLLM_KEY}: found blanks or characters that cannot be sent in a header, expected printable "
                          f"ASCII")  # fmt: skip
    host = read_address(settings.base_url).netloc
    return Access(settings.base_url.strip().rstrip("/"), host, TIMEOUT_S, RETRIES, key)


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[VLLMServer]:
    """Yield a client for the server. No request is sent yet."""
    # A redirect could carry the key to another server, and a proxy from the environment does not belong in between.
    http = httpx2.AsyncClient(
        timeout=access.timeout_s, follow_redirects=False, trust_env=False, limits=httpx2.Limits(max_connections=None)
    )
    client = openai.AsyncOpenAI(
        base_url=access.base_url,
        api_key=access.key or "none",
        timeout=access.timeout_s,
        max_retries=access.retries,
        http_client=http,
    )
    client.organization = client.project = None  # the client reads both from the environment; only OpenAI may see them
    async with client:
        yield VLLMServer(access, client)


class VLLMServer:
    """Requests to one server. The caller limits how many are sent at once."""

    def __init__(self, access: Access, client: openai.AsyncOpenAI) -> None:
        """Send requests with `client`."""
        self._access, self._client = access, client

    async def served(self) -> Served:
        """Return the policy with which the server was started.

        Raises:
            VLLMError: if the server does not name one.
        """
        body = await self._ask("models", "Expected a list of models")
        try:
            cards = body["data"]
            card = next(card for card in cards if card.get("parent") is None)
            adapters = tuple(str(card["id"]) for card in cards if card.get("parent") is not None)
            return Served(str(card["id"]), str(card.get("root") or card["id"]), int(card["max_model_len"]), adapters)
        except (StopIteration, AttributeError, KeyError, TypeError, ValueError):
            raise self._invalid("models", "found no model with an `id` and a `max_model_len`") from None

    async def loads_adapters(self) -> bool:
        """Whether the server can load adapters at run time. Nothing is loaded.

        Raises:
            VLLMError: if the server is gone.
        """
        try:
            await self._send("load_lora_adapter", None)
        except openai.APIStatusError as error:
            return error.status_code != 404  # 405 if the path exists
        return True

    async def load(self, name: str, folder: str) -> None:
        """Load an adapter of peft.

        Args:
            name: its name in requests; never used before, because the server's prefix cache is by name.
            folder: where the server finds it.

        Raises:
            VLLMError: if the server does not load it.
        """
        try:
            await self._send("load_lora_adapter", {"lora_name": name, "lora_path": folder})
        except openai.APIStatusError as error:
            if "already been loaded" not in str(error):  # then an earlier answer was lost
                raise self._refused(
                    "load_lora_adapter", error,
                    f"Expected it to load the adapter in {folder}: start it with --enable-lora, --max-lora-rank of at "
                    "least training.adapter.rank and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment, and give "
                    "it access to that folder under the same path (training.vllm.adapters)",
                ) from None  # fmt: skip

    async def unload(self, name: str) -> None:
        """Unload an adapter, if the server still has it.

        Raises:
            VLLMError: if the server rejects the request.
        """
        try:
            await self._send("unload_lora_adapter", {"lora_name": name})
        except openai.NotFoundError:
            pass
        except openai.APIStatusError as error:
            raise self._refused("unload_lora_adapter", error, "Expected it to unload the adapter") from None

    async def sample(self, model: str, turn: Turn, vocabulary: int) -> SampledTurn:
        """Sample a turn from the full distribution, without truncation or penalties.

        Args:
            model: name of the served policy or of an adapter.

        Raises:
            VLLMError: if the server is gone or rejects the request, or its answer is invalid.
        """
        body = {
            "model": model, "prompt": list(turn.prompt), "max_tokens": turn.most, "temperature": turn.temperature,
            "seed": turn.seed, "n": 1, "stream": False, "logprobs": 0, "return_token_ids": True,
            # The model's own generation_config.json may set these, and the server would follow it.
            "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0,
            "frequency_penalty": 0.0, "min_tokens": 0, "ignore_eos": True, "stop": [],
            "stop_token_ids": [] if turn.end_id is None else [turn.end_id],
            "skip_special_tokens": False, "add_special_tokens": False,
        }  # fmt: skip
        found = await self._ask("completions", "Expected the tokens of a turn", body)
        try:
            (choice,) = found["choices"]
            ids, logprobs, read = choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["prompt_token_ids"]
            why = _misread(turn, ids, logprobs, vocabulary)
        except (KeyError, TypeError, ValueError):
            raise self._invalid(
                "completions", "expected one choice with `token_ids`, `prompt_token_ids` and `logprobs`; use a vLLM "
                "version with `return_token_ids`",
            ) from None  # fmt: skip
        if found.get("model") != model or read != list(turn.prompt):
            why = "it is about another model or other tokens than were sent"
        if why:
            raise self._invalid("completions", why)
        return SampledTurn(ids, [float(one) for one in logprobs])

    async def _ask(self, path: str, expected: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object of an answer."""
        try:
            answer = json.loads((await self._send(path, body)).content)
        except openai.APIStatusError as error:
            raise self._refused(path, error, expected) from None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._invalid(path, "expected a JSON object")
        return answer

    async def _send(self, path: str, body: Mapping[str, Any] | None) -> httpx2.Response:
        """Return the answer to a request.

        Raises:
            APIStatusError: if the server rejects the request.
            VLLMError: if the last attempt has no answer, or only that the server is busy or broken.
        """
        try:
            if body is None:
                return await self._client.get(path, cast_to=httpx2.Response)
            return await self._client.post(path, cast_to=httpx2.Response, body=body)
        except openai.APITimeoutError:
            why = f"no answer within {self._access.timeout_s:g} s"
        except openai.APIConnectionError as error:
            why = f"{type(error.__cause__ or error).__name__}: {error.__cause__ or error}"
        except openai.APIStatusError as error:
            if error.status_code < 500 and error.status_code != 429:
                raise
            why = f"HTTP {error.status_code}: {error.response.text}"
        times = "once" if self._access.retries == 0 else f"{self._access.retries + 1} times"
        raise VLLMError(
            f"the vLLM server at {self._access.host} was asked {times} for /{path} without success; the last time: "
            f"{quoted(why)}. {GO_ON}"
        )

    def _refused(self, path: str, error: openai.APIStatusError, expected: str) -> VLLMError:
        said = quoted(f"HTTP {error.status_code}: {error.response.text}")
        return VLLMError(f"the vLLM server at {self._access.host} rejects /{path} ({said}). {expected}")

    def _invalid(self, path: str, why: str) -> VLLMError:
        return VLLMError(
            f"the vLLM server at {self._access.host} sent an invalid answer to /{path}: {quoted(why)}. {GO_ON}"
        )


def _misread(turn: Turn, ids: list[int], logprobs: list[float], vocabulary: int) -> str:
    """Say what is wrong with the tokens of a turn; "" if nothing."""
    if not ids or not all(type(one) is int and 0 <= one < vocabulary for one in ids):
        return f"expected tokens of the vocabulary of {vocabulary}, found {ids}"
    if turn.end_id is not None and turn.end_id in ids[:-1]:
        return f"it continues after the token that ends a turn ({turn.end_id}, in {ids})"
    if len(ids) != turn.most and (ids[-1] != turn.end_id or len(ids) > turn.most):
        return f"it has {len(ids)} tokens, expected {turn.most}, or fewer if the last one ends the turn"
    if len(logprobs) != len(ids) or not all(-float("inf") < one <= _SLACK for one in logprobs):
        return f"expected a finite log-probability of at most 0 for each of {len(ids)} tokens, found {logprobs}"
    return ""


def quoted(text: str) -> str:
    """Quote a server's text in one short line, without secrets and control characters."""
    line = " ".join(conceal(text, secrets()).split())
    line = "".join(mark if mark.isprintable() else "\ufffd" for mark in line)
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}..."
