"""The base on this machine, which training would load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.config.hub_name import check_pinned, name_and_commit
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.base_tokens import check_tokens

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_CONFIG, _TOKENIZER = "config.json", "tokenizer.json"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


def base_folder(run: Run) -> Path:
    """Return the folder of the base that the run would load.

    Raises:
        ConfigError: when it is not on this machine, a file of it is missing, or a token has no embedding.
    """
    folder = _folder(run)
    lacking = [name for name in (_CONFIG, _TOKENIZER) if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in _WEIGHTS):
        lacking.append(_WEIGHTS[0])
    if lacking:
        raise ConfigError(f"base_model: {folder} lacks {', '.join(lacking)}; build or download the base again")
    check_tokens(folder)
    return folder


def base_config(run: Run) -> PretrainedConfig:
    """Return the base's configuration, as read by transformers.

    Raises:
        ConfigError: when the base is not there or its config.json is not valid.
    """
    from rc1_lib.training.base_model import config_of

    return config_of(base_folder(run))


def _folder(run: Run) -> Path:
    named = run.config.base_model
    folder = run.workspace.find(named)
    if folder.is_dir():
        return folder
    check_pinned(named, "base_model")
    from huggingface_hub import try_to_load_from_cache

    name, commit = name_and_commit(named)
    found = try_to_load_from_cache(name, _CONFIG, revision=commit)
    if not isinstance(found, str):
        raise ConfigError(
            f"base_model: {name} is not on this machine, so training would start with its download; fetch it now: "
            f"hf download {name} --revision {commit}"
        )
    return Path(found).parent
