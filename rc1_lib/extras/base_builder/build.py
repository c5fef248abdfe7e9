"""Build the bundled base: corpus, tokenizer, training, accuracy by stage, and files.

This takes too long for `make run`, so the result is committed: weights, tokenizer, recipe, the SHA-256 of every file
and the accuracy by stage. `rc1 build-base` reproduces it: the same kind of machine, versions and threads give the same
bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rc1_lib.config.file import load_config
from rc1_lib.extras.base_builder.corpus import Demonstration, shards, written
from rc1_lib.extras.base_builder.learning import train
from rc1_lib.extras.base_builder.packed import Packed, joined, pack
from rc1_lib.extras.base_builder.recipe import Corpus, Recipe
from rc1_lib.extras.base_builder.skill import skill_by_stage
from rc1_lib.extras.base_builder.tokenizer import train_tokenizer
from rc1_lib.pool.templates import load_pack
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.chat_format import ChatFormat, turn_text
from rc1_lib.training.recorded_base import write_base
from rc1_lib.workspace.artifacts import PROJECT_ROOT

_TOKENIZER_ROWS = 24_000


def build_base(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Build the base in `folder` and return its record.

    Args:
        recipe: how to build it.
        folder: where to write; an older base is replaced when the new one is complete.

    Raises:
        ConfigError: if the recipe's pool configuration is rejected.
    """
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)

    @lru_cache(maxsize=1)  # consecutive phases read the same corpus, and one in memory is enough
    def rows_of(name: str) -> list[Demonstration]:
        return corpus_rows(recipe, recipe.corpora[name])

    @lru_cache(maxsize=1)
    def learned_of(name: str) -> Packed:
        corpus = recipe.corpora[name]
        return tokens_of(rows_of(name)[: -corpus.held_out], form, corpus)

    tokenizer = train_tokenizer(_texts(rows_of(next(iter(recipe.corpora)))[:_TOKENIZER_ROWS]), recipe.vocabulary)
    form = ChatFormat(tokenizer)
    model = Qwen3ForCausalLM(architecture(recipe, tokenizer.eos_token_id, tokenizer.pad_token_id))
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(0.0, recipe.model.embedding_std)
    curves, seconds = [], 0.0
    learned: dict[str, dict[str, int]] = {}
    for number, phase in enumerate(recipe.training):
        packed = learned_of(phase.corpus)
        learned[phase.corpus] = {"rows": len(packed), "tokens_per_pass": int(packed.starts[-1])}
        begun = time.monotonic()
        curves.append(train(model, packed, phase, form.pad_id, recipe.seed + number))
        seconds += time.monotonic() - begun
        round_to_file(model)
    model.train(False)
    last = recipe.training[-1].corpus
    unseen = rows_of(last)[-recipe.corpora[last].held_out :]
    fitting = [row for row in unseen if not row["made_up"] and _fits(row, form, recipe.corpora[last])]
    skill = skill_by_stage(model, fitting, form)
    facts = {
        "recipe": recipe.model_dump(mode="json"),
        "parameters": sum(value.numel() for value in model.parameters()),
        "learned": learned,
        "loss_by_phase": curves,
        "accuracy_by_stage": skill,
        "training_minutes": round(seconds / 60, 1),
    }
    return write_base(folder, model, tokenizer, facts)


def architecture(recipe: Recipe, eos: int, pad: int) -> Qwen3Config:
    """Return the model's configuration, as in its config.json.

    Args:
        recipe: contains it.
        eos: id of the token that ends a turn.
        pad: id of the padding token.
    """
    shape = recipe.model
    return Qwen3Config(
        vocab_size=recipe.vocabulary,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.positions,
        tie_word_embeddings=True,
        eos_token_id=eos,
        pad_token_id=pad,
        bos_token_id=None,
        dtype="float32",
        architectures=[Qwen3ForCausalLM.__name__],
    )


def round_to_file(model: Qwen3ForCausalLM) -> None:
    """Round the weights to the precision of the file, so that the measured accuracy is the file's."""
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(value.to(torch.bfloat16).to(value.dtype))


def corpus_rows(recipe: Recipe, corpus: Corpus) -> list[Demonstration]:
    """Return the demonstrations of a corpus, shuffled.

    Raises:
        ConfigError: if the recipe's pool configuration is rejected.
    """
    config = load_config(PROJECT_ROOT / recipe.pool, corpus.overrides)
    templates = load_pack(PROJECT_ROOT / config.pool.templates_dir)
    parts = shards(corpus.tasks, corpus.rows, corpus.seed, corpus.per_shard)
    rows = [row for shard in written(parts, config.pool, templates, corpus.workers) for row in shard]
    np.random.default_rng(corpus.seed).shuffle(rows)
    return rows


def tokens_of(rows: Sequence[Demonstration], form: ChatFormat, corpus: Corpus) -> Packed:
    """Tokenize the rows and drop those that are too long."""
    parts = []
    for first in range(0, len(rows), 2000):
        parts.append(pack(rows[first : first + 2000], form, corpus.max_tokens, corpus.made_up))
        report_progress("base: tokens", min(first + 2000, len(rows)), len(rows))
    return joined(parts)


def _fits(row: Demonstration, form: ChatFormat, corpus: Corpus) -> bool:
    return len(form.dialogue_ids(row["messages"])[0]) <= corpus.max_tokens


def _texts(rows: list[Demonstration]) -> Iterator[str]:
    for row in rows:
        for message in row["messages"]:
            # With a line break first, as in the chat format.
            yield "\n" + (turn_text(message) if message["role"] == "assistant" else message["content"] or "")
