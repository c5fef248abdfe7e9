"""llama.cpp for comparisons with a policy: tokens with probabilities, its tokenizer, and whole episodes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unicodedata import normalize

import httpx2
import orjson
from transformers import PreTrainedTokenizerBase

from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import RunningEpisode, Trajectory

_QUIET = -1
_SEEDS = 2**32
PROBE_TEXTS = (
    "Anna's 3 apples cost 12.50 each!", "1234567 + 89 = ?", "don't, we'll, THEY'RE", "caf\u00e9 \u2014 na\u00efve",
    "cafe\u0301, accents apart", "  two  spaces\n\n\tand a tab\r\nand CRLF\r\n", "a\u2014b\u2013c -- d-e",
    "\u4ed6\u4e70\u4e86\u4e09\u4e2a\u82f9\u679c\uff0c\u517112\u5143\u3002", "\U0001f642\U0001f642 done...?!",
    '{"name": "calc", "arguments": {"expression": "3*(4+5)"}}',
)  # fmt: skip
"""Texts that tokenizers treat differently: digits, contractions, composed and separate accents, dashes, white space,
CRLF, Chinese, emoji, JSON."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What was generated after a prompt.

    Attributes:
        ids: token ids, including the one that ends a turn.
        logprobs: of each token, at temperature 1; NaN if llama.cpp does not report it, as for tokens that end inside a
            character.
    """

    ids: list[int]
    logprobs: list[float]


class LlamaCpp:
    """A GGUF file in llama.cpp on the CPU, as long as this object lives."""

    def __init__(self, path: Path, context: int, threads: int) -> None:
        """Load a file.

        Args:
            context: most tokens of prompt and continuation together.
            threads: of llama.cpp.

        Raises:
            RC1Error: if llama.cpp cannot read the file.
        """
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.n_gpu_layers = context, 1, 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.warmup, params.verbosity, params.cache_ram_mib = False, _QUIET, 0
        params.use_jinja = params.enable_chat_template = False  # prompts are token ids
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise RC1Error(f"{path}: llama.cpp cannot read it ({error})") from None

    def greedy(self, prompt: Sequence[int], most: int) -> Continuation:
        """Generate greedily after a prompt.

        Args:
            prompt: token ids.
            most: number of tokens to generate.
        """
        return self._say(prompt, most, {"temperature": 0.0, "cache_prompt": False})

    def sampled(self, prompt: Sequence[int], most: int, temperature: float, seed: int) -> Continuation:
        """Sample after a prompt from the full distribution. A prefix shared with the last prompt is reused.

        Args:
            prompt: token ids.
            most: number of tokens to generate.
            temperature: 0 means greedy.
        """
        whole = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "samplers": ["temperature"]}
        return self._say(prompt, most, {"temperature": temperature, "seed": seed, "cache_prompt": True, **whole})

    def _say(self, prompt: Sequence[int], most: int, how: Mapping[str, Any]) -> Continuation:
        asked = {"prompt": list(prompt), "n_predict": most, "n_probs": 1, "return_tokens": True, **how}
        with self._client() as client:
            answer = client.post(f"{self._server.listening_address}/completion", json=asked)
        body = orjson.loads(answer.content)
        if "tokens" not in body:
            raise RC1Error(f"llama.cpp returned an error for a prompt of {len(prompt)} tokens: {body}")
        ids = [int(one) for one in body["tokens"]]
        return Continuation(ids, _aligned(ids, body.get("completion_probabilities", [])))

    @staticmethod
    def _client() -> httpx2.Client:
        """Create a client for several calls, because each client reads all certificates of the machine."""
        return httpx2.Client(trust_env=False, timeout=600.0)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts with llama.cpp; special tokens in them count as such."""
        address = f"{self._server.listening_address}/tokenize"
        with self._client() as client:
            answers = [client.post(address, json={"content": text, "parse_special": True}) for text in texts]
        return [[int(one) for one in answer.raise_for_status().json()["tokens"]] for answer in answers]


def _aligned(ids: Sequence[int], said: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the log-probability of each token; NaN if it is unclear which token llama.cpp means.

    It leaves out tokens whose text ends inside a character. The reported tokens are matched from the front and from the
    back, and a value is used only if both matches agree.
    """
    reported = [int(one["id"]) for one in said]
    first, last = _places(ids, reported), _places(ids[::-1], reported[::-1])
    found = [math.nan] * len(ids)
    for number, (early, late) in enumerate(zip(first, reversed(last), strict=False)):
        if early == len(ids) - 1 - late:
            found[early] = float(said[number]["logprob"])
    return found


def _places(ids: Sequence[int], reported: Sequence[int]) -> list[int]:
    """Match the reported tokens to `ids` in order, each at the first possible index."""
    places, start = [], 0
    for one in reported:
        place = next((at for at in range(start, len(ids)) if ids[at] == one), None)
        if place is None:
            return []
        places.append(place)
        start = place + 1
    return places


def composes(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer composes letters and accents first (NFC), as Qwen's does. llama.cpp never does."""
    body = json.loads(cast(Any, tokenizer).backend_tokenizer.to_str())
    return bool(body["normalizer"] == {"type": "NFC"})


def comparable(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[str]:
    """Prepare texts for llama.cpp: composed (NFC) if the tokenizer composes them."""
    return [normalize("NFC", text) for text in texts] if composes(tokenizer) else list(texts)


class LlamaPlayer:
    """Plays episodes with a GGUF file, one at a time, by token ids. Environment and limits are those of rollouts."""

    def __init__(self, llama: LlamaCpp, playground: Playground, context: int) -> None:
        """Keep what is needed to play.

        Args:
            llama: has loaded the file.
            playground: environment, limits and chat format of the policy.
            context: context length of the model.
        """
        self._llama, self._playground, self._context = llama, playground, context

    def play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], *, temperature: float, seed: int, iteration: int
    ) -> list[Trajectory]:
        """Play every row once.

        The sampled tokens depend only on seed, iteration and key, but the random numbers are not those of PyTorch.

        Args:
            keys: one name per episode, which seeds its random numbers.
            temperature: 0 means greedy.
            seed: decides the sampled tokens, together with `iteration` and the key.
            iteration: training step.
        """
        sampling = self._playground.sampling(temperature, seed, iteration)
        form = self._playground.form
        return [
            self._play(RunningEpisode(self._playground.start(row, key), form, sampling, self._context), temperature)
            for row, key in zip(rows, keys, strict=True)
        ]

    def _play(self, episode: RunningEpisode, temperature: float) -> Trajectory:
        read = list(episode.prompt)
        while not episode.over:
            said = self._llama.sampled(read, episode.room, temperature, int(episode.uniform * _SEEDS))
            if not said.ids:
                raise RC1Error(f"llama.cpp generated nothing after {len(read)} tokens; expected at least one token")
            for token, logprob in zip(said.ids, said.logprobs, strict=True):
                if episode.over:  # the episode's limit was below the number of tokens requested
                    break
                episode.take(token, logprob)
            read += episode.feed(episode.known)
        return episode.trajectory()
