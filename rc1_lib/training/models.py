"""Which model a run trains, as the loader of base models takes it."""

from __future__ import annotations

from rc1_lib.artifacts import Workspace
from rc1_lib.config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import base_fingerprint
from rc1_lib.training.train_config import LoraSection, ModelSection

METHODS = ("lora", "qlora")


def model_section(config: RunConfig, base: str) -> ModelSection:
    """The model of a run, with `base` as its frozen weights.

    Raises:
        ConfigError: for a method of finetuning that is not known.
    """
    method = config.finetune.method
    if method not in METHODS:
        raise ConfigError(f"finetune.method is '{method}', expected one of {', '.join(METHODS)}")
    adapter = config.training.adapter
    return ModelSection(
        base=base,
        quantization="nf4" if method == "qlora" else None,
        gradient_checkpointing=False,
        lora=LoraSection(
            enable=True,
            r=adapter.rank,
            alpha=adapter.alpha,
            dropout=adapter.dropout,
            target_modules=adapter.targets,
        ),
    )


def base_name(config: RunConfig, workspace: Workspace) -> str:
    """`base_model` as transformers takes it: a folder of the workspace or the project if there is one, else a hub name.

    Raises:
        ConfigError: when it reads like a folder, but none is there.
    """
    folder = workspace.find(config.base_model)
    if folder.is_dir():
        return str(folder)
    if config.base_model.startswith(("models/", ".", "/")):
        raise ConfigError(f"base_model: {folder} is not there; build it with `rc1 build-base`, or name another model")
    return config.base_model


def fingerprint_of(config: RunConfig, base: str) -> str:
    """One SHA-256 over a base's files, or its commit on the hub.

    Raises:
        ConfigError: when it cannot be had.
    """
    return base_fingerprint(model_section(config, base))
