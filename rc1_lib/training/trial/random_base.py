"""A base of random weights in the shape of a real model, as a folder that is loaded like any other.

It is written tensor by tensor, so that a shape of many gigabytes takes little memory, and in bfloat16, as such models
are published. A model that is no folder here has no tokenizer, and none can be made up for a vocabulary of its size:
the embedded base's stands in for it, whose tokens are the first few thousand. Those behind have no text, and random
weights sample little else.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from rc1_lib.runtime.progress import tell
from rc1_lib.training.base_model import model_without_weights
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.trial_mark import RANDOM_BASE, RECORD
from rc1_lib.workspace.artifacts import read_json, sha256_json, write_json

_SHARD_BYTES = 2 * 2**30
_STAGE = "random base"


def write_random_base(folder: Path, config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, seed: int) -> None:
    """Write the base, unless the very same lies there already.

    Args:
        folder: where; what lies there is replaced.
        config: of the model.
        tokenizer: that stands in for the model's own.
        seed: of the weights.
    """
    named = copy.deepcopy(config)
    named.update({"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None})
    record = {"trial": RANDOM_BASE, "seed": seed, "shape": sha256_json(named.to_dict()), "config": named.to_dict()}
    if _is(folder, record):
        return
    with atomic_folder.replaced_folder(folder) as temporary:
        named.architectures = [type(model_without_weights(named)).__name__]
        named.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        _write_weights(temporary, _weights(named), seed, float(getattr(named, "initializer_range", 0.02)))
        write_json(temporary / RECORD, record)


def _is(folder: Path, record: Mapping[str, Any]) -> bool:
    try:
        return bool(read_json(folder / RECORD) == record)
    except (OSError, ValueError):
        return False


def _weights(config: PretrainedConfig) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor that a published model of this configuration holds."""
    model: Any = model_without_weights(config)
    tied = set(model._tied_weights_keys or ()) if config.tie_word_embeddings else set()
    return {name: tuple(value.shape) for name, value in model.state_dict().items() if name not in tied}


def _write_weights(folder: Path, shapes: Mapping[str, tuple[int, ...]], seed: int, deviation: float) -> None:
    shards = list(_shards(shapes))
    where = dict[str, str]()
    for number, names in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        drawn = {name: _drawn(shapes[name], f"{seed}/{name}", deviation) for name in names}
        save_file(drawn, folder / file, metadata={"format": "pt"})
        where |= dict.fromkeys(names, file)
        tell(_STAGE, number, len(shards))
    size = 2 * sum(torch.Size(shape).numel() for shape in shapes.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": where})


def _shards(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[list[str]]:
    """Names of tensors that lie in one file."""
    names, size = list[str](), 0
    for name, shape in shapes.items():
        more = 2 * torch.Size(shape).numel()
        if names and size + more > _SHARD_BYTES:
            yield names
            names, size = [], 0
        names.append(name)
        size += more
    yield names


def _drawn(shape: tuple[int, ...], name: str, deviation: float) -> Tensor:
    """Norms are 1, as every model begins with; the rest is normal, and hangs on the name alone."""
    if len(shape) == 1:
        return torch.full(shape, 0.0 if name.endswith("bias") else 1.0, dtype=torch.bfloat16)
    generator = torch.Generator().manual_seed(int(sha256_json(name)[:15], 16))
    return torch.empty(shape, dtype=torch.bfloat16).normal_(0.0, deviation, generator=generator)
