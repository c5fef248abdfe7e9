"""A small sentence-embedding model with random weights for tests; it knows words, not meanings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def bag_of_words(folder: Path, words: Sequence[str], pooling: str = "mean_tokens", scale: float = 1.0) -> Path:
    """Write a BERT of one layer that hardly mixes: the mean of its states is that of random word vectors.

    Args:
        folder: the folder to write.
        words: the vocabulary.
        pooling: the mode that its pooling file names; "" writes no such file.
        scale: the factor of all weights; 0 makes all vectors equal.
    """
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *dict.fromkeys(words)))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    ends = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.mul_(scale * 50 if "word_embeddings" in name else scale)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    if pooling:
        (folder / "1_Pooling").mkdir()
        pooling_config = {"word_embedding_dimension": 64, f"pooling_mode_{pooling}": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling_config))
    return folder
