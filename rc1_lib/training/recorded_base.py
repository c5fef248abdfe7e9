"""The files of an embedded base with a record of how it was made, and whether they are still what it says."""

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
    """Put a base in place, as a whole or not at all, and give its record.

    Args:
        folder: where; what lies there is replaced.
        model: its output weights are its embeddings; written in bfloat16.
        tokenizer: of the model.
        facts: what else the record says.
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
    """Compare the files of a base with the fingerprints in its record. A model without a record is not looked at.

    Raises:
        ConfigError: when the record cannot be read, or a file is missing or has other bytes.
    """
    path = folder / RECORD
    if not path.is_file():
        return
    try:
        files = dict(read_json(path)["files"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path}: is not the record of a base; build it again with rc1 build-base") from None
    for name, wanted in files.items():
        if not (folder / name).is_file():
            raise ConfigError(
                f"{folder / name}: not found, but {RECORD} lists it; rebuild the base with rc1 build-base"
            )
        if sha256_file(folder / name) != wanted:
            raise ConfigError(
                f"{folder / name}: its bytes are not those that {RECORD} names; put the file back, build the base "
                f"again with rc1 build-base, or remove {RECORD} from a model of your own"
            )
