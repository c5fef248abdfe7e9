"""Resolve the model that a run trains, for loading."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.config.hub_name import check_pinned, reads_like_folder
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import base_fingerprint, check_not_a_local_path
from rc1_lib.training.train_config import LoraSection, ModelSection
from rc1_lib.workspace.artifacts import Workspace, read_json
from rc1_lib.workspace.file_hashes import sha256_file

METHODS = ("lora", "qlora")


ALPHA_PER_RANK = 2
"""The usual scale of an adapter's output, so that another rank needs no other learning rate."""


def model_section(config: RunConfig, base: str) -> ModelSection:
    """Return the model section of a run, with `base` as the frozen weights.

    Raises:
        ConfigError: if the finetuning method is unknown.
    """
    method = config.finetune.method
    if method not in METHODS:
        raise ConfigError(f"finetune.method is '{method}', expected one of {', '.join(METHODS)}")
    adapter = config.training.adapter
    return ModelSection(
        base=base,
        quantization="nf4" if method == "qlora" else None,
        gradient_checkpointing=config.training.gradient_checkpointing,
        lora=LoraSection(
            enable=True,
            r=adapter.rank,
            alpha=ALPHA_PER_RANK * adapter.rank,
            dropout=0.0,  # dropout would make sampling and training policies differ
            target_modules=adapter.targets,
        ),
    )


def base_name(config: RunConfig, workspace: Workspace) -> str:
    """Resolve `base_model` for transformers.

    Raises:
        ConfigError: if it looks like a folder but does not exist, exists only in the current directory, or is on the
            hub without a commit.
    """
    found = resolved_base(config.base_model, workspace, "base_model")
    if found == config.base_model and not workspace.find(found).is_dir():
        check_pinned(found, "base_model")
    return found


def resolved_base(name: str, workspace: Workspace, key: str) -> str:
    """Resolve a model for transformers: a folder of the workspace or the project if there is one, or else a hub name.

    Args:
        workspace: where to look for the folder, besides the project.
        key: of the configuration, for the message.

    Raises:
        ConfigError: if it looks like a folder but does not exist, or exists only in the current directory.
    """
    folder = workspace.find(name)
    if folder.is_dir():
        return str(folder.absolute())
    if reads_like_folder(name):
        raise ConfigError(f"{key}: {folder} not found; name the folder of a model, or use another one")
    check_not_a_local_path(name, key)
    return name


def fingerprint_of(config: RunConfig, base: str) -> str:
    """Return the SHA-256 of a base's files, or its commit on the hub.

    Raises:
        ConfigError: if the base cannot be loaded.
    """
    return base_fingerprint(model_section(config, base))


RECORD = "base.json"


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
        raise ConfigError(
            f"{path}: not a valid record of a base; restore the folder, or remove this file if it is your own model"
        ) from None
    for name, wanted in files.items():
        if not (folder / name).is_file():
            raise ConfigError(f"{folder / name}: not found, but {RECORD} lists it; restore the file")
        if sha256_file(folder / name) != wanted:
            raise ConfigError(
                f"{folder / name}: its SHA-256 differs from {RECORD}; restore the file, or remove "
                f"{RECORD} if this is your own model"
            )
