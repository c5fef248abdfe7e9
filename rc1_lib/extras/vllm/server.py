"""A vLLM server over HTTP: what it serves, loading adapters, and sampling turns as tokens with log-probabilities.

Every answer is validated. A lost request is sent again; a sampled turn has a seed, so a lost request does not change
what is sampled.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2

from rc1_lib.config.addresses import VLLM_KEY, read_address
from rc1_lib.config.episodes import VLLM
from rc1_lib.errors import ConfigError
from rc1_lib.masking import conceal, secrets
from rc1_lib.training.rollout.decoder import RolloutError

TIMEOUT_S = 120.0
"""Seconds for a complete answer; a server that needs more is stuck."""
ATTEMPTS = 3
"""Number of times that a failing request is sent in all."""
FIRST_PAUSE_S = 0.5
"""Pause before the second attempt; it doubles for every further one."""
_BROKEN: tuple[type[Exception], ...] = (httpx2.HTTPError, ssl.SSLError, OSError, anyio.EndOfStream)
"""Exceptions of a broken connection. httpx2 does not wrap the last one."""
_ASK_AGAIN = 429
_LONGEST_QUOTE = 300
_LEAST, _SLACK = -1e6, 1e-3
"""Valid range of a log-probability: finite, and above 0 only by rounding."""
_ENVELOPE = 64 * 2**10
"""Bytes that any answer may have, whatever the request."""
_READ, _SAID = 16, 4 * 2**10
"""Bytes per prompt token, which the answer repeats as a number, and per sampled token: number, log-probability, and
three times its text, each character of which JSON may escape as six."""
_LISTED = 2**20
"""Bytes of a list of models: one model, and adapters of other users of the server."""
_PRINTABLE = re.compile(r"[!-~]+")
GO_ON = "This step is discarded: fix the server, and run the same command again to resume from the newest checkpoint"
"""End of messages about faults that occur during training."""


class VLLMError(RolloutError):
    """The server is gone, rejects a request, or sends an invalid answer."""


@dataclass(frozen=True, slots=True)
class Served:
    """The policy with which a server was started.

    Attributes:
        name: its name in requests.
        root: where the server found it.
        context: context length in the server.
        adapters: names of the loaded adapters.
    """

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
        seed: of the sampling.
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
        base_url: its address.
        host: its host, without anything secret, for messages.
        timeout_s: seconds for a complete answer.
        attempts: number of times that a request is sent in all.
        key: sent with every request; None if the server needs none.
    """

    base_url: str = field(repr=False)
    host: str
    timeout_s: float
    attempts: int
    key: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A complete answer."""

    status: int
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The content as UTF-8, whatever encoding it declares, because Python rejects some."""
        return self.content.decode(errors="replace")


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
    return Access(settings.base_url.strip().rstrip("/"), host, TIMEOUT_S, ATTEMPTS, key)


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[VLLMServer]:
    """Yield a client for the server. No request is sent yet."""
    headers = {"Accept-Encoding": "identity"}
    if access.key is not None:
        headers["Authorization"] = f"Bearer {access.key}"
    # A redirect could carry the key to another server, and a proxy from the environment does not belong in between.
    async with httpx2.AsyncClient(
        headers=headers, timeout=None, verify=_trust(), follow_redirects=False, trust_env=False,
        limits=httpx2.Limits(max_connections=None),
    ) as http:  # fmt: skip
        yield VLLMServer(access, http)


class VLLMServer:
    """Requests to one server. The caller limits how many are sent at once."""

    def __init__(self, access: Access, http: httpx2.AsyncClient) -> None:
        """Send requests with `http`."""
        self._access, self._http = access, http

    async def served(self) -> Served:
        """Return the policy with which the server was started.

        Raises:
            VLLMError: if the server does not name one.
        """
        body = self._json("models", await self._ask("models", _LISTED))
        cards = _objects(body.get("data"))
        plain = [card for card in cards if card.get("parent") is None]
        adapters = tuple(str(card.get("id")) for card in cards if card.get("parent") is not None)
        try:
            card = plain[0]
            return Served(str(card["id"]), str(card.get("root") or card["id"]), int(card["max_model_len"]), adapters)
        except (IndexError, KeyError, TypeError, ValueError, OverflowError):
            raise self._unbelievable("models", "found no model with an `id` and a `max_model_len`") from None

    async def loads_adapters(self) -> bool:
        """Whether the server can load adapters at run time. Nothing is loaded.

        Raises:
            VLLMError: if the server is gone.
        """
        return (await self._ask("load_lora_adapter", _ENVELOPE)).status != 404  # 405 if the path exists

    async def load(self, name: str, folder: str) -> None:
        """Load an adapter of peft.

        Args:
            name: its name in requests; never used before, because the server's prefix cache is by name.
            folder: where the server finds it.

        Raises:
            VLLMError: if the server does not load it.
        """
        answer = await self._ask("load_lora_adapter", _ENVELOPE, {"lora_name": name, "lora_path": folder})
        if answer.is_success or (answer.status == 400 and "already been loaded" in answer.text):
            return  # already loaded: an earlier answer was lost
        raise self._refused(
            "load_lora_adapter", answer,
            f"Expected it to load the adapter in {folder}: start it with --enable-lora, --max-lora-rank of at least "
            "training.adapter.rank and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment, and give it access to "
            "that folder under the same path (training.vllm.adapters)",
        )  # fmt: skip

    async def unload(self, name: str) -> None:
        """Unload an adapter, if the server still has it.

        Raises:
            VLLMError: if the server rejects the request.
        """
        answer = await self._ask("unload_lora_adapter", _ENVELOPE, {"lora_name": name})
        if not answer.is_success and answer.status != 404:
            raise self._refused("unload_lora_adapter", answer, "Expected it to unload the adapter")

    async def sample(self, model: str, turn: Turn, vocabulary: int) -> SampledTurn:
        """Sample a turn from the full distribution, without truncation or penalties.

        Args:
            model: name of the served policy or of an adapter.
            turn: what to sample.
            vocabulary: size of the vocabulary.

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
        answer = await self._ask("completions", _ENVELOPE + _READ * len(turn.prompt) + _SAID * turn.most, body)
        if not answer.is_success:
            raise self._refused("completions", answer, "Expected the tokens of a turn")
        found = self._json("completions", answer)
        why = _misread(found, model, turn, vocabulary)
        if why:
            raise self._unbelievable("completions", why)
        (choice,) = found["choices"]
        return SampledTurn(choice["token_ids"], [float(one) for one in choice["logprobs"]["token_logprobs"]])

    async def _ask(self, path: str, most_bytes: int, body: Mapping[str, Any] | None = None) -> _Answer:
        """Return an answer that is not a server error, and not longer than the request allows."""
        access, why = self._access, ""
        for attempt in range(access.attempts):
            if attempt:
                await asyncio.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
            try:
                # The client's own timeouts cover single reads, so a server that drips bytes would never time out.
                async with asyncio.timeout(access.timeout_s):
                    answer = await self._answer(path, most_bytes, body)
            except TimeoutError:
                why = f"no complete answer within {access.timeout_s:g} s"
            except _BROKEN as error:
                why = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                if not (answer.status >= 500 or answer.status == _ASK_AGAIN):
                    return answer
                why = f"HTTP {answer.status}: {answer.text}"
        times = "once" if access.attempts == 1 else f"{access.attempts} times"
        raise VLLMError(
            f"the vLLM server at {access.host} was asked {times} for /{path} without success; the last time: "
            f"{quoted(why)}. {GO_ON}"
        )

    async def _answer(self, path: str, most_bytes: int, body: Mapping[str, Any] | None) -> _Answer:
        """Read an answer without decompression, because a few compressed bytes could become any number of them."""
        content = bytearray()
        async with self._http.stream(
            "GET" if body is None else "POST", f"{self._access.base_url}/{path}", json=body
        ) as response:
            async for part in response.aiter_raw():
                content += part
                if len(content) > most_bytes:
                    raise self._unbelievable(path, f"it has more than {most_bytes:,} bytes, the limit for this request")
        return _Answer(response.status_code, bytes(content))

    def _json(self, path: str, answer: _Answer) -> dict[str, Any]:
        if not answer.is_success:
            raise self._refused(path, answer, "Expected an answer")
        try:
            body = json.loads(answer.content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise self._unbelievable(path, f"expected a JSON object, found {answer.text!r}")
        return body

    def _refused(self, path: str, answer: _Answer, expected: str) -> VLLMError:
        said = f"HTTP {answer.status}: {answer.text}"
        return VLLMError(f"the vLLM server at {self._access.host} rejects /{path} ({quoted(said)}). {expected}")

    def _unbelievable(self, path: str, why: str) -> VLLMError:
        return VLLMError(
            f"the vLLM server at {self._access.host} sent an invalid answer to /{path}: {quoted(why)}. {GO_ON}"
        )


def _misread(body: Mapping[str, Any], model: str, turn: Turn, vocabulary: int) -> str:
    """Say what is wrong with an answer; "" if nothing."""
    choices = _objects(body.get("choices"))
    if body.get("model") != model:
        return f"it is of the model {body.get('model')!r}, expected {model!r}"
    if len(choices) != 1:
        return "it does not have exactly one choice"
    ids, read, kept = choices[0].get("token_ids"), choices[0].get("prompt_token_ids"), choices[0].get("logprobs")
    if not isinstance(ids, list) or not ids:
        return "it has no `token_ids`, expected at least one token; use a vLLM version with `return_token_ids`"
    if read != list(turn.prompt):
        return "its `prompt_token_ids` differ from the tokens that were sent"
    if not all(type(one) is int and 0 <= one < vocabulary for one in ids):
        return f"it has a token outside the vocabulary of {vocabulary} ({ids})"
    if turn.end_id is not None and turn.end_id in ids[:-1]:
        return f"it continues after the token that ends a turn ({turn.end_id}, in {ids})"
    if len(ids) != turn.most and (ids[-1] != turn.end_id or len(ids) > turn.most):
        return f"it has {len(ids)} tokens, expected {turn.most}, or fewer if the last one ends the turn"
    logprobs = kept.get("token_logprobs") if isinstance(kept, dict) else None
    if not isinstance(logprobs, list) or len(logprobs) != len(ids):
        found = len(logprobs) if isinstance(logprobs, list) else "no"
        return f"it has {found} log-probabilities for {len(ids)} tokens"
    if not all(type(one) in (int, float) and _LEAST <= one <= _SLACK for one in logprobs):
        return f"a log-probability is not a finite number of at most 0 ({logprobs})"
    return ""


def _objects(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def quoted(text: str) -> str:
    """Quote a server's text in one short line, without secrets and control characters."""
    line = " ".join(conceal(text, secrets()).split())
    line = "".join(mark if mark.isprintable() else "\ufffd" for mark in line)
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}..."


@functools.cache
def _trust() -> ssl.SSLContext:
    """Load the trusted certificates of this machine, once, because it is slow."""
    return httpx2.create_ssl_context()
