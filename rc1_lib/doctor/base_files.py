"""The base on this machine: checks that its files are complete, and reads the shapes of its weights without loading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from rc1_lib.config.hub_name import check_pinned, name_and_commit
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.base_tokens import check_tokens
from rc1_lib.workspace.artifacts import read_json

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_TOKENIZER = "tokenizer.json"
_LENGTH = 8
"""Bytes at the start of a safetensors file that contain the length of its header."""


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """A complete base.

    Attributes:
        folder: its folder.
        shapes: name of a weight -> its shape.
        hidden_size: width of the model's states.
    """

    folder: Path
    shapes: Mapping[str, tuple[int, ...]]
    hidden_size: int

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(prod(shape) for shape in self.shapes.values())

    def configuration(self) -> PretrainedConfig:
        """The base's configuration, as read by transformers.

        Raises:
            ConfigError: when its config.json is not valid.
        """
        from rc1_lib.training.base_model import config_of

        return config_of(self.folder)


def read_base(run: Run) -> BaseFiles:
    """The base that the run would load.

    Raises:
        ConfigError: when it is not on this machine, a file of it is missing or damaged, or a token has no embedding.
    """
    folder = _folder(run)
    lacking = [name for name in (_CONFIG, _TOKENIZER) if not (folder / name).is_file()]
    if lacking:
        raise ConfigError(f"base_model: {folder} lacks {', '.join(lacking)}; build or download the base again")
    check_tokens(folder)
    shapes: dict[str, tuple[int, ...]] = {}
    for name in _weight_files(folder):
        shapes |= _shapes(folder / name)
    return BaseFiles(folder, shapes, _hidden_size(folder / _CONFIG))


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


def _weight_files(folder: Path) -> list[str]:
    if not (folder / _INDEX).is_file():
        return [_WEIGHTS]
    try:
        return sorted(set(read_json(folder / _INDEX)["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise ConfigError(f"base_model: {folder / _INDEX} lists no weight files; download the base again") from None


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes in the header of a safetensors file, whose length must match the header."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(_LENGTH), "little")
            size = path.stat().st_size
            header = orjson.loads(stream.read(min(length, size)))
        header.pop("__metadata__", None)
        end = max(entry["data_offsets"][1] for entry in header.values())
        whole = size == _LENGTH + length + end
        shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
    except FileNotFoundError:
        raise ConfigError(f"base_model: {path} is missing; build or download the base again") from None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"base_model: {path} cannot be read as safetensors ({error}); build or download the base again"
        ) from None
    if not whole:
        raise ConfigError(
            f"base_model: {path} has {size:,} bytes, but its header says {_LENGTH + length + end:,}: it was truncated "
            f"or altered; build or download the base again"
        )
    return shapes


def _hidden_size(path: Path) -> int:
    try:
        body = read_json(path)
        return int(body.get("text_config", body)["hidden_size"])
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(f"base_model: {path} has no hidden_size ({error}); use a causal model") from None
