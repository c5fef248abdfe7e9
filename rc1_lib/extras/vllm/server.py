"""A vLLM server over HTTP: what it serves, adapters that come and go, and turns as tokens with their probabilities.

Nothing that it says is believed unread. A request that was lost is sent again; a sampled turn has a seed, so that what
was lost decides nothing about what is sampled.
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

ATTEMPTS = 3
"""Times in all that a request is sent that fails on the way or on the server: more would wait for one that is gone."""
FIRST_PAUSE_S = 0.5
"""Before a request is sent again; twice as long before each further time."""
_BROKEN: tuple[type[Exception], ...] = (httpx2.HTTPError, ssl.SSLError, OSError, anyio.EndOfStream)
"""What a connection that fails raises; httpx2 lets the last one through from below."""
_ASK_AGAIN = 429
_LONGEST_QUOTE = 300
_LEAST, _SLACK = -1e6, 1e-3
"""Between them is what a log-probability may be: finite, and above 0 by rounding alone."""
_ENVELOPE = 64 * 2**10
"""Bytes that any answer may have, whatever was asked."""
_READ, _SAID = 16, 4 * 2**10
"""Bytes that it may have for a token that was sent, which it repeats as a number, and for one that it samples: number,
log-probability, and three times its text, every sign of which JSON may write as six."""
_LISTED = 2**20
"""Bytes that a list of models may have: one model, and adapters of whoever else uses the server."""
_PRINTABLE = re.compile(r"[!-~]+")
GO_ON = "Nothing of this step is kept: fix the server, and the same command goes on from the newest checkpoint"
"""What a message ends with that can only be found out in the middle of a training."""


class VLLMError(RolloutError):
    """A server that is gone, refuses, or says what cannot be believed."""


@dataclass(frozen=True, slots=True)
class Served:
    """The policy that a server was started with.

    Attributes:
        name: what it is asked for by.
        root: where the server found it.
        context: tokens of a prompt and what is said after it, as the server has it.
        adapters: names of the adapters that it has.
    """

    name: str
    root: str
    context: int
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """What is asked for: the tokens of one turn.

    Attributes:
        prompt: all that comes before it.
        most: tokens that it may have.
        end_id: the token that ends it; None where `most` tokens are wanted, whatever they are.
        temperature: 0 is greedy.
        seed: decides together with all else what is sampled.
    """

    prompt: Sequence[int]
    most: int
    end_id: int | None
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class Said:
    """A turn: its tokens, the one that ends it included, and their log-probabilities as sampled."""

    ids: list[int]
    logprobs: list[float]


@dataclass(frozen=True, slots=True)
class Access:
    """How a server is reached.

    Attributes:
        base_url: its address.
        host: of it, fit to be shown.
        timeout_s: seconds after which an answer is given up, however much of it has come.
        attempts: times in all that a request is sent.
        key: sent with every request; None where the server asks for none.
        bound: says where `timeout_s` comes from.
    """

    base_url: str = field(repr=False)
    host: str
    timeout_s: float
    attempts: int
    key: str | None = field(repr=False)
    bound: str = "training.vllm.timeout_s"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came back, read whole."""

    status: int
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Whatever it says of its encoding: of some names Python makes no text, but an error."""
        return self.content.decode(errors="replace")


def access_of(settings: VLLM) -> Access:
    """The server of the configuration, with the key that the environment holds.

    Raises:
        ConfigError: when that cannot be sent; it is not shown.
    """
    assert settings.base_url is not None, "the configuration wants an address where it wants vLLM"
    key = os.environ.get(VLLM_KEY) or None
    if key is not None and not _PRINTABLE.fullmatch(key):
        raise ConfigError(f"{VLLM_KEY}: holds blanks or characters that cannot be sent in a header; expected printable "
                          f"ASCII")  # fmt: skip
    host = read_address(settings.base_url).netloc
    return Access(settings.base_url.strip().rstrip("/"), host, settings.timeout_s, ATTEMPTS, key)


@asynccontextmanager
async def connected(access: Access) -> AsyncIterator[VLLMServer]:
    """A server, as long as the block lasts; nothing is asked yet."""
    headers = {"Accept-Encoding": "identity"}
    if access.key is not None:
        headers["Authorization"] = f"Bearer {access.key}"
    # A redirect would carry the key to another server; a proxy of the environment has no business between the two.
    async with httpx2.AsyncClient(
        headers=headers, timeout=None, verify=_trust(), follow_redirects=False, trust_env=False,
        limits=httpx2.Limits(max_connections=None),
    ) as http:  # fmt: skip
        yield VLLMServer(access, http)


class VLLMServer:
    """Requests to one server. How many are under way at once is the caller's to bound."""

    def __init__(self, access: Access, http: httpx2.AsyncClient) -> None:
        """Asks over `http`."""
        self._access, self._http = access, http

    async def served(self) -> Served:
        """The policy that the server was started with.

        Raises:
            VLLMError: when the server names none.
        """
        body = self._json("models", await self._ask("models", _LISTED))
        cards = _objects(body.get("data"))
        plain = [card for card in cards if card.get("parent") is None]
        adapters = tuple(str(card.get("id")) for card in cards if card.get("parent") is not None)
        try:
            card = plain[0]
            return Served(str(card["id"]), str(card.get("root") or card["id"]), int(card["max_model_len"]), adapters)
        except (IndexError, KeyError, TypeError, ValueError, OverflowError):
            raise self._unbelievable("models", "it names no model with an `id` and a `max_model_len`") from None

    async def loads_adapters(self) -> bool:
        """Whether it was started to load adapters while it runs; nothing is loaded.

        Raises:
            VLLMError: when the server is gone.
        """
        return (await self._ask("load_lora_adapter", _ENVELOPE)).status != 404  # of a path that is there: 405

    async def load(self, name: str, folder: str) -> None:
        """Have the server load an adapter of peft.

        Args:
            name: what it is asked for by, never used before: what the server keeps of a prompt it keeps by this name.
            folder: where the server finds it.

        Raises:
            VLLMError: when it does not.
        """
        answer = await self._ask("load_lora_adapter", _ENVELOPE, {"lora_name": name, "lora_path": folder})
        if answer.is_success or (answer.status == 400 and "already been loaded" in answer.text):
            return  # the second: an answer was lost, the adapter was not
        raise self._refused(
            "load_lora_adapter", answer,
            f"Expected that it loads the adapter in {folder}: start it with --enable-lora, --max-lora-rank of at least "
            f"training.adapter.rank and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment, and have it see that "
            f"folder under the same path (training.vllm.adapters)",
        )  # fmt: skip

    async def unload(self, name: str) -> None:
        """Have the server forget an adapter, if it still has it.

        Raises:
            VLLMError: when it refuses.
        """
        answer = await self._ask("unload_lora_adapter", _ENVELOPE, {"lora_name": name})
        if not answer.is_success and answer.status != 404:
            raise self._refused("unload_lora_adapter", answer, "Expected that it forgets the adapter")

    async def say(self, model: str, turn: Turn, vocabulary: int) -> Said:
        """Sample a turn from the whole distribution: nothing is cut from it, and nothing is added.

        Args:
            model: the served policy's name or an adapter's.
            turn: what is wanted.
            vocabulary: ids below it are tokens.

        Raises:
            VLLMError: when the server is gone or refuses, or its answer is not what a turn has to be.
        """
        body = {
            "model": model, "prompt": list(turn.prompt), "max_tokens": turn.most, "temperature": turn.temperature,
            "seed": turn.seed, "n": 1, "stream": False, "logprobs": 0, "return_token_ids": True,
            # The model's own generation_config.json may say otherwise of these, and the server would follow it.
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
        return Said(choice["token_ids"], [float(one) for one in choice["logprobs"]["token_logprobs"]])

    async def _ask(self, path: str, most_bytes: int, body: Mapping[str, Any] | None = None) -> _Answer:
        """One answer that is no failure of the server's own, and no longer than what was asked for can be."""
        access, why = self._access, ""
        for attempt in range(access.attempts):
            if attempt:
                await asyncio.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
            try:
                # The client's own time-outs watch single reads, so that a server that drips bytes is never late.
                async with asyncio.timeout(access.timeout_s):
                    answer = await self._answer(path, most_bytes, body)
            except TimeoutError:
                why = f"no whole answer within {access.timeout_s:g} s ({access.bound})"
            except _BROKEN as error:
                why = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                if not (answer.status >= 500 or answer.status == _ASK_AGAIN):
                    return answer
                why = f"HTTP {answer.status}: {answer.text}"
        times = "once" if access.attempts == 1 else f"{access.attempts} times"
        raise VLLMError(
            f"the vLLM server at {access.host} was asked {times} (/{path}), the last time: {quoted(why)}; expected an "
            f"answer. {GO_ON}"
        )

    async def _answer(self, path: str, most_bytes: int, body: Mapping[str, Any] | None) -> _Answer:
        """An answer as it came over the wire: packed, a few bytes could become any number of them."""
        content = bytearray()
        async with self._http.stream(
            "GET" if body is None else "POST", f"{self._access.base_url}/{path}", json=body
        ) as response:
            async for part in response.aiter_raw():
                content += part
                if len(content) > most_bytes:
                    raise self._unbelievable(
                        path, f"it has more than {most_bytes:,} bytes, which is beyond what was asked for"
                    )
        return _Answer(response.status_code, bytes(content))

    def _json(self, path: str, answer: _Answer) -> dict[str, Any]:
        if not answer.is_success:
            raise self._refused(path, answer, "Expected an answer")
        try:
            body = json.loads(answer.content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise self._unbelievable(path, f"no JSON object, but {answer.text!r}")
        return body

    def _refused(self, path: str, answer: _Answer, expected: str) -> VLLMError:
        said = f"HTTP {answer.status}: {answer.text}"
        return VLLMError(f"the vLLM server at {self._access.host} refuses /{path} ({quoted(said)}). {expected}")

    def _unbelievable(self, path: str, why: str) -> VLLMError:
        return VLLMError(
            f"the vLLM server at {self._access.host} answers /{path} with what cannot be used: {quoted(why)}. {GO_ON}"
        )


def _misread(body: Mapping[str, Any], model: str, turn: Turn, vocabulary: int) -> str:
    """What is wrong with an answer; "" where nothing is."""
    choices = _objects(body.get("choices"))
    if body.get("model") != model:
        return f"it is of the model {body.get('model')!r}, expected {model!r}"
    if len(choices) != 1:
        return "it holds no single choice"
    ids, read, kept = choices[0].get("token_ids"), choices[0].get("prompt_token_ids"), choices[0].get("logprobs")
    if not isinstance(ids, list) or not ids:
        return "it holds no `token_ids`, expected at least one token; take a vLLM that knows `return_token_ids`"
    if read != list(turn.prompt):
        return "its `prompt_token_ids` are not the tokens that were sent"
    if not all(type(one) is int and 0 <= one < vocabulary for one in ids):
        return f"it holds a token outside the vocabulary of {vocabulary} ({ids})"
    if turn.end_id is not None and turn.end_id in ids[:-1]:
        return f"it goes on after the token that ends a turn ({turn.end_id}, in {ids})"
    if len(ids) != turn.most and (ids[-1] != turn.end_id or len(ids) > turn.most):
        return f"it has {len(ids)} tokens, expected {turn.most}, or fewer with the token that ends a turn after them"
    logprobs = kept.get("token_logprobs") if isinstance(kept, dict) else None
    if not isinstance(logprobs, list) or len(logprobs) != len(ids):
        found = len(logprobs) if isinstance(logprobs, list) else "no"
        return f"it has {found} log-probabilities for {len(ids)} tokens"
    if not all(type(one) in (int, float) and _LEAST <= one <= _SLACK for one in logprobs):
        return f"a log-probability is no finite number of at most 0 ({logprobs})"
    return ""


def _objects(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def quoted(text: str) -> str:
    """What a server said, in one line that is no longer than it has to be, without secrets and without controls."""
    line = " ".join(conceal(text, secrets()).split())
    line = "".join(mark if mark.isprintable() else "\ufffd" for mark in line)
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}..."


@functools.cache
def _trust() -> ssl.SSLContext:
    """Whom connections trust: the certificates of this machine, read once, since that takes a while."""
    return httpx2.create_ssl_context()
