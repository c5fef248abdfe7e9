"""Which model a run trains, as the loader of base models takes it."""

from __future__ import annotations

from rc1_lib.config.hub_name import check_pinned, reads_like_folder
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import base_fingerprint, refuse_lookalike
from rc1_lib.training.train_config import LoraSection, ModelSection
from rc1_lib.workspace.artifacts import Workspace

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
        gradient_checkpointing=config.training.gradient_checkpointing,
        lora=LoraSection(
            enable=True,
            r=adapter.rank,
            alpha=adapter.alpha,
            dropout=0.0,  # PPO compares the sampling policy with the learning one, and dropout would part them
            target_modules=adapter.targets,
        ),
    )


def base_name(config: RunConfig, workspace: Workspace) -> str:
    """`base_model` as transformers takes it.

    Raises:
        ConfigError: when it reads like a folder, but none is there, or one is only in the current directory; or when
            it is on the hub, and no commit is named.
    """
    found = resolved_base(config.base_model, workspace, "base_model")
    if found == config.base_model and not workspace.find(found).is_dir():
        check_pinned(found, "base_model")
    return found


def resolved_base(name: str, workspace: Workspace, key: str) -> str:
    """A model as transformers takes it: a folder of the workspace or the project if there is one, else a hub name.

    Args:
        name: as the configuration has it.
        workspace: where a folder is looked for; nowhere else is, the project apart.
        key: of the configuration, for the refusal.

    Raises:
        ConfigError: when it reads like a folder, but none is there, or one is only in the current directory.
    """
    folder = workspace.find(name)
    if folder.is_dir():
        return str(folder.absolute())
    if reads_like_folder(name):
        raise ConfigError(f"{key}: {folder} is not there; build it with `rc1 build-base`, or name another model")
    refuse_lookalike(name, key)
    return name


def fingerprint_of(config: RunConfig, base: str) -> str:
    """One SHA-256 over a base's files, or its commit on the hub.

    Raises:
        ConfigError: when it cannot be had.
    """
    return base_fingerprint(model_section(config, base))
