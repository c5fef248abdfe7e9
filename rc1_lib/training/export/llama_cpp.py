"""llama.cpp as a policy is compared with it: tokens with their probabilities, its tokenizer, and whole episodes."""

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

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.records import MeasuredRow
from rc1_lib.training.export.gguf_file import INSTALL
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
"""Texts that tokenizers cut differently: digits, contractions, accents in one and apart, dashes, blanks, CRLF, Chinese,
emoji, JSON."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What was said after a prompt.

    Attributes:
        ids: the tokens, the one that ends a turn included.
        logprobs: of each, at temperature 1; NaN where llama.cpp does not say: of tokens that end within a character.
    """

    ids: list[int]
    logprobs: list[float]


class LlamaCpp:
    """A GGUF file in llama.cpp, on the CPU, for as long as this object lives."""

    def __init__(self, path: Path, context: int, threads: int) -> None:
        """Loads the file.

        Args:
            path: of the file.
            context: tokens of a prompt and its continuation.
            threads: of llama.cpp.

        Raises:
            ConfigError: when the library `xllamacpp` is not installed.
            RC1Error: when llama.cpp cannot read the file.
        """
        try:
            import xllamacpp
        except ImportError:
            raise ConfigError(f"the library xllamacpp {INSTALL}") from None

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.n_gpu_layers = context, 1, 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.warmup, params.verbosity, params.cache_ram_mib = False, _QUIET, 0
        params.use_jinja = params.enable_chat_template = False  # prompts come as tokens
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise RC1Error(f"{path}: llama.cpp cannot read it ({error})") from None

    def greedy(self, prompt: Sequence[int], most: int) -> Continuation:
        """The likeliest token, again and again, after a prompt of token ids.

        Args:
            prompt: its token ids.
            most: tokens to say.
        """
        return self._say(prompt, most, {"temperature": 0.0, "cache_prompt": False})

    def sampled(self, prompt: Sequence[int], most: int, temperature: float, seed: int) -> Continuation:
        """Tokens drawn after a prompt, from the whole distribution; what the last prompt shares is not read again.

        Args:
            prompt: its token ids.
            most: tokens to say.
            temperature: 0 is greedy.
            seed: of the drawing.
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
        """One for several calls: each reads every certificate of the machine, though nothing is encrypted here."""
        return httpx2.Client(trust_env=False, timeout=600.0)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """How llama.cpp tokenises texts, marks of the chat format taken for what they are."""
        address = f"{self._server.listening_address}/tokenize"
        with self._client() as client:
            answers = [client.post(address, json={"content": text, "parse_special": True}) for text in texts]
        return [[int(one) for one in answer.raise_for_status().json()["tokens"]] for answer in answers]


def _aligned(ids: Sequence[int], said: Sequence[Mapping[str, Any]]) -> list[float]:
    """The log-probability of each token, NaN where it is not plain which one llama.cpp means.

    It leaves out tokens whose text ends within a character. Of several places for what it says, the first and the last
    are looked at, and only where both are one is it believed.
    """
    reported = [int(one["id"]) for one in said]
    first, last = _places(ids, reported), _places(ids[::-1], reported[::-1])
    found = [math.nan] * len(ids)
    for number, (early, late) in enumerate(zip(first, reversed(last), strict=False)):
        if early == len(ids) - 1 - late:
            found[early] = float(said[number]["logprob"])
    return found


def _places(ids: Sequence[int], reported: Sequence[int]) -> list[int]:
    """The first place in `ids` for each of the reported, one after the other."""
    places, start = [], 0
    for one in reported:
        place = next((at for at in range(start, len(ids)) if ids[at] == one), None)
        if place is None:
            return []
        places.append(place)
        start = place + 1
    return places


def composes(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether it makes one character of a letter and its accent first (NFC), as Qwen's does: llama.cpp never does."""
    body = json.loads(cast(Any, tokenizer).backend_tokenizer.to_str())
    return bool(body["normalizer"] == {"type": "NFC"})


def comparable(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[str]:
    """The texts as llama.cpp has to be given them: composed where the tokenizer composes."""
    return [normalize("NFC", text) for text in texts] if composes(tokenizer) else list(texts)


class LlamaPlayer:
    """Plays episodes of a GGUF file one after the other, by token ids alone; world and bounds are those of rollouts."""

    def __init__(self, llama: LlamaCpp, playground: Playground, context: int) -> None:
        """Plays with what `llama` has loaded.

        Args:
            llama: holds the file.
            playground: worlds, bounds and chat format of the policy.
            context: tokens that the model can read.
        """
        self._llama, self._playground, self._context = llama, playground, context

    def play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], *, temperature: float, seed: int, iteration: int
    ) -> list[Trajectory]:
        """Play every row once.

        What is sampled hangs on seed, iteration and key alone, but on other random numbers than PyTorch's.

        Args:
            rows: of the pool's schema.
            keys: name each episode's random numbers.
            temperature: 0 is greedy.
            seed: with `iteration` and the key it decides what is sampled.
            iteration: of the training.
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
                raise RC1Error(f"llama.cpp said nothing after {len(read)} tokens; expected at least one")
            for token, logprob in zip(said.ids, said.logprobs, strict=True):
                if episode.over:  # cut by a budget that is smaller than what was asked for
                    break
                episode.take(token, logprob)
            read += episode.feed(episode.known)
        return episode.trajectory()
