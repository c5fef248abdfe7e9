"""A tiny random Qwen3 with a tokenizer trained here, as a folder that `from_pretrained` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def shape(vocabulary: int, hidden: int, **more: Any) -> Qwen3Config:
    """Two layers with tied embeddings; `more` replaces or adds keys."""
    small = {
        "intermediate_size": 2 * hidden, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 16, "tie_word_embeddings": True,
    }  # fmt: skip
    return Qwen3Config(vocab_size=vocabulary, hidden_size=hidden, **(small | more))


def write_base(folder: Path, hidden: int = 32, pad_token: str | None = "<|endoftext|>") -> Path:
    """Write a model with weights of a fixed seed, and a tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["What is two plus three? The lamp is in the attic.", "user", "assistant"], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token=pad_token, chat_template=TEMPLATE
    ).save_pretrained(folder)
    torch.manual_seed(7)
    config = shape(300, hidden, max_position_embeddings=256, eos_token_id=2, pad_token_id=0, bos_token_id=None)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder
