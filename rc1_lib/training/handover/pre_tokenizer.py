"""Which of llama.cpp's ways to cut texts a tokenizer has: found by trying them, since a tokenizer does not say."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from unicodedata import normalize

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerBase

from rc1_lib.training.handover.gguf_file import PRE_TOKENIZERS, GGUFType, write_gguf
from rc1_lib.training.handover.llama_cpp import LlamaCpp

PROBE_TEXTS = (
    "Anna's 3 apples cost 12.50 each!", "1234567 + 89 = ?", "don't, we'll, THEY'RE", "caf\u00e9 \u2014 na\u00efve",
    "cafe\u0301, accents apart", "  two  spaces\n\n\tand a tab\r\nand CRLF\r\n", "a\u2014b\u2013c -- d-e",
    "\u4ed6\u4e70\u4e86\u4e09\u4e2a\u82f9\u679c\uff0c\u517112\u5143\u3002", "\U0001f642\U0001f642 done...?!",
    '{"name": "calc", "arguments": {"expression": "3*(4+5)"}}',
)  # fmt: skip
"""Texts that tokenizers cut differently: digits, contractions, accents in one and apart, dashes, blanks, CRLF, Chinese,
emoji, JSON."""
_TINY = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1}


def composes(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether it makes one character of a letter and its accent first (NFC), as Qwen's does: llama.cpp never does."""
    body = json.loads(cast(Any, tokenizer).backend_tokenizer.to_str())
    return bool(body["normalizer"] == {"type": "NFC"})


def comparable(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[str]:
    """The texts as llama.cpp has to be given them: composed where the tokenizer composes."""
    return [normalize("NFC", text) for text in texts] if composes(tokenizer) else list(texts)


def pre_tokenizer_of(tokenizer: PreTrainedTokenizerBase, size: int, texts: Sequence[str] = ()) -> str | None:
    """The first way in which llama.cpp makes the same tokens of all texts (`comparable`); None where none does.

    Each is tried with a model of one layer, so that a large one is written once.

    Args:
        tokenizer: a byte-level BPE.
        size: of the model's vocabulary.
        texts: in addition to `PROBE_TEXTS`.

    Raises:
        ConfigError: when the extra `gguf` is not installed.
        RC1Error: when it is no byte-level BPE.
    """
    every = comparable(tokenizer, [*PROBE_TEXTS, *texts])
    ours = [cast(Any, tokenizer).encode(text, add_special_tokens=False) for text in every]
    with tempfile.TemporaryDirectory() as temporary, torch.random.fork_rng(devices=[]):
        folder = Path(temporary)
        ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
        shape = AutoConfig.for_model("llama", vocab_size=size, **ends, **_TINY)
        AutoModelForCausalLM.from_config(shape).save_pretrained(folder)  # type: ignore[no-untyped-call]
        tokenizer.save_pretrained(folder)
        for name in PRE_TOKENIZERS:
            write_gguf(folder, folder / "tiny.gguf", GGUFType.F16, int(tokenizer.eos_token_id), pre_tokenizer=name)
            llama = LlamaCpp(folder / "tiny.gguf", 64, 1)
            if llama.token_ids(every) == ours:
                return name
    return None
