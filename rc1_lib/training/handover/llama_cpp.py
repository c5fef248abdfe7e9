"""llama.cpp, as far as a policy is compared with it: tokens with their probabilities, and its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import orjson

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.training.handover.gguf_file import INSTALL

_QUIET = -1


@dataclass(frozen=True, slots=True)
class Continuation:
    """What was said behind a prompt.

    Attributes:
        ids: the tokens, the one that ends a turn included.
        logprobs: of each, at temperature 1.
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
        """The likeliest token, again and again, behind a prompt of token ids.

        Args:
            prompt: its token ids.
            most: tokens to say.
        """
        return self._say(prompt, most, {"temperature": 0.0, "cache_prompt": False})

    def sampled(self, prompt: Sequence[int], most: int, temperature: float, seed: int) -> Continuation:
        """Tokens drawn behind a prompt, from the whole distribution; what the last prompt shares is not read again.

        Args:
            prompt: its token ids.
            most: tokens to say.
            temperature: 0 is greedy.
            seed: of the drawing.
        """
        whole = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "samplers": ["temperature"]}
        return self._say(prompt, most, {"temperature": temperature, "seed": seed, "cache_prompt": True, **whole})

    def _say(self, prompt: Sequence[int], most: int, how: Mapping[str, Any]) -> Continuation:
        answer = self._server.handle_completions({"prompt": list(prompt), "n_predict": most, "logprobs": 1, **how})
        body = orjson.loads(answer) if isinstance(answer, str | bytes) else answer
        if "choices" not in body:
            raise RC1Error(f"llama.cpp refused a prompt of {len(prompt)} tokens: {body}")
        said = body["choices"][0]["logprobs"]["content"]
        return Continuation([int(one["id"]) for one in said], [float(one["logprob"]) for one in said])

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """How llama.cpp tokenises texts, marks of the chat format taken for what they are."""
        address = f"{self._server.listening_address}/tokenize"
        # One client for all: each reads every certificate of the machine, though nothing is encrypted here.
        with httpx2.Client(trust_env=False, timeout=60.0) as client:
            answers = [client.post(address, json={"content": text, "parse_special": True}) for text in texts]
        return [[int(one) for one in answer.raise_for_status().json()["tokens"]] for answer in answers]
