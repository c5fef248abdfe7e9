"""Write a bundled base with a record of how it was made, and check its files against the record."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rc1_lib.errors import ConfigError
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

RECORD = "base.json"


def write_base(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a base atomically and return its record.

    Args:
        folder: where to write; an existing folder is replaced.
        model: with tied embeddings; written in bfloat16.
        tokenizer: of the model.
        facts: further entries of the record.
    """
    with atomic_folder.replaced_folder(folder) as temporary:
        tokenizer.save_pretrained(temporary)
        model.config.save_pretrained(temporary)
        weights = {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"}
        halved = {name: value.to(torch.bfloat16).contiguous() for name, value in weights.items()}
        save_file(halved, temporary / "model.safetensors", metadata={"format": "pt"})
        record = {
            **facts,
            "files": {path.name: sha256_file(path) for path in sorted(temporary.iterdir())},
            "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")}
            | {"python": platform.python_version()},
        }
        write_json(temporary / RECORD, record)
    return record


def check_recorded(folder: Path) -> None:
    """Check that a base's files match the SHA-256 values in its record. Models without a record are not checked.

    Raises:
        ConfigError: if the record cannot be read, or a file is missing or differs.
    """
    path = folder / RECORD
    if not path.is_file():
        return
    try:
        files = dict(read_json(path)["files"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path}: not a valid record of a base; rebuild the base with rc1 build-base") from None
    for name, wanted in files.items():
        if not (folder / name).is_file():
            raise ConfigError(
                f"{folder / name}: not found, but {RECORD} lists it; rebuild the base with rc1 build-base"
            )
        if sha256_file(folder / name) != wanted:
            raise ConfigError(
                f"{folder / name}: its SHA-256 differs from {RECORD}; restore the file, rebuild the base with rc1 "
                f"build-base, or remove {RECORD} if this is your own model"
            )
