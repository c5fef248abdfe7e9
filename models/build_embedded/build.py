"""Build the embedded model in a new folder, and compare it with the committed one.

In the checkout: `python -m models.build_embedded.build FOLDER [RECIPE.yaml]`. The recipe is `recipe.yaml` next to this
file. The same kind of machine, versions and threads give the same bytes.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml
from pydantic import BaseModel
from safetensors.torch import save_file
from transformers import PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

from models.build_embedded.corpus import Corpus, Demonstration, demonstrations
from models.build_embedded.learning import Phase, train
from models.build_embedded.skill import skill_by_stage
from models.build_embedded.tokenizer import train_tokenizer
from models.build_embedded.tokens import Packed, pack
from rc1_lib.training.chat_format import ChatFormat, turn_text
from rc1_lib.training.models import RECORD
from rc1_lib.workspace.artifacts import PROJECT_ROOT, read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

_COMMITTED = PROJECT_ROOT / "models/embedded"
_TOKENIZER_ROWS = 24_000


class Shape(BaseModel, extra="forbid"):
    """The model, as a Qwen3 configuration."""

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    positions: int
    embedding_std: float


class Recipe(BaseModel, extra="forbid"):
    """The whole recipe."""

    seed: int
    pool: str
    threads: int
    corpora: dict[str, Corpus]
    vocabulary: int
    model: Shape
    training: list[Phase]


def build(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Build the model in a new folder, and return its record."""
    assert all(phase.corpus in recipe.corpora for phase in recipe.training), "a phase names a corpus that is not there"
    folder.mkdir(parents=True)
    torch.set_num_threads(recipe.threads)
    torch.manual_seed(recipe.seed)

    @lru_cache(maxsize=1)  # consecutive phases read the same corpus, and one in memory is enough
    def rows_of(name: str) -> list[Demonstration]:
        return demonstrations(recipe.corpora[name], recipe.pool)

    @lru_cache(maxsize=1)
    def learned_of(name: str) -> Packed:
        corpus = recipe.corpora[name]
        return pack(rows_of(name)[: -corpus.held_out], form, corpus.max_tokens, corpus.made_up)

    tokenizer = train_tokenizer(_texts(rows_of(next(iter(recipe.corpora)))[:_TOKENIZER_ROWS]), recipe.vocabulary)
    form = ChatFormat(tokenizer)
    model = Qwen3ForCausalLM(_architecture(recipe, tokenizer))
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
        with torch.no_grad():  # to the precision of the file, so that the measured accuracy is the file's
            for value in model.parameters():
                value.copy_(value.to(torch.bfloat16).to(value.dtype))
    model.train(False)
    last = recipe.corpora[recipe.training[-1].corpus]
    unseen = [row for row in rows_of(recipe.training[-1].corpus)[-last.held_out :] if not row["made_up"]]
    fitting = [row for row in unseen if len(form.dialogue_ids(row["messages"])[0]) <= last.max_tokens]
    facts = {
        "recipe": recipe.model_dump(mode="json"),
        "parameters": sum(value.numel() for value in model.parameters()),
        "learned": learned,
        "loss_by_phase": curves,
        "accuracy_by_stage": skill_by_stage(model, fitting, form),
        "training_minutes": round(seconds / 60, 1),
    }
    tokenizer.save_pretrained(folder)
    model.config.save_pretrained(folder)
    weights = {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"}
    halved = {name: value.to(torch.bfloat16).contiguous() for name, value in weights.items()}
    save_file(halved, folder / "model.safetensors", metadata={"format": "pt"})
    record = {
        **facts,
        "files": {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")}
        | {"python": platform.python_version()},
    }
    write_json(folder / RECORD, record)
    return record


def _architecture(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> Qwen3Config:
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
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        dtype="float32",
        architectures=[Qwen3ForCausalLM.__name__],
    )


def _texts(rows: Sequence[Demonstration]) -> Iterator[str]:
    for row in rows:
        for message in row["messages"]:
            # With a line break first, as in the chat format.
            yield "\n" + (turn_text(message) if message["role"] == "assistant" else message["content"] or "")


def main(folder: str, recipe: str = str(Path(__file__).with_name("recipe.yaml"))) -> None:
    """Build, and print what a maintainer wants to know."""
    built = build(Recipe.model_validate(yaml.safe_load(Path(recipe).read_text(encoding="utf-8"))), Path(folder))
    there = read_json(_COMMITTED / RECORD)
    print(f"{built['parameters']:,} parameters, {built['training_minutes']} minutes, {built['versions']}")
    skill = built["accuracy_by_stage"]
    for place in (name for name in skill if not name.startswith("n ")):
        print(f"{place:24} {skill[place]:.2f} of {skill[f'n {place}']:.0f} places")
    for name, digest in built["files"].items():
        print(f"{name:24} {'equal to' if there['files'].get(name) == digest else 'DIFFERS from'} {_COMMITTED}")


if __name__ == "__main__":
    main(*sys.argv[1:])
