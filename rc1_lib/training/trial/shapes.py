"""The shape of a model without its weights: from its folder, or for the published base from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import PretrainedConfig, Qwen3Config

from rc1_lib.config.hub_name import name_and_commit
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import config_of
from rc1_lib.training.usable import check_figures

_KNOWN: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-4B-Thinking-2507": {
        "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936, "tie_word_embeddings": True,
        "max_position_embeddings": 262_144, "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5_000_000.0},
    },
}  # fmt: skip
"""What the config.json of a model on the hub says, so that its shape can be had without a download."""
_WIDTHS = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")


def shape_of(base: str, narrower: int = 1, layers: int | None = None) -> PretrainedConfig:
    """The configuration that a model of this shape is built by.

    Args:
        base: a folder with a config.json, or the name of a model on the hub whose shape is known here.
        narrower: what its widths (states, feed-forward part, heads) are divided by; layers, head size and vocabulary
            stay.
        layers: how many of them there are; None: all.

    Raises:
        ConfigError: when the shape is not known, is told by other figures, cannot be divided so, or has fewer layers.
    """
    name, _ = name_and_commit(base)
    if (Path(base) / "config.json").is_file():
        config = config_of(Path(base)).get_text_config()
    elif name in _KNOWN:
        config = Qwen3Config(**_KNOWN[name])
    else:
        raise ConfigError(
            f"base_model: the shape of '{base}' is not known without its config.json; known are "
            f"{', '.join(_KNOWN)} and every model in a folder"
        )
    check_figures(config)
    return _with_layers(_narrowed(config, narrower), layers)


def _narrowed(config: PretrainedConfig, by: int) -> PretrainedConfig:
    for width in _WIDTHS:
        whole = int(getattr(config, width))
        if whole % by:
            raise ConfigError(
                f"training.trial.narrower: found {by}, but {width} is {whole}, which it does not divide; take a "
                f"divisor of {', '.join(str(getattr(config, each)) for each in _WIDTHS)}"
            )
    for width in _WIDTHS:
        setattr(config, width, int(getattr(config, width)) // by)
    return config


def _with_layers(config: PretrainedConfig, layers: int | None) -> PretrainedConfig:
    if layers is None:
        return config
    if layers > config.num_hidden_layers:
        raise ConfigError(
            f"training.trial.layers: found {layers}, but the shape has {config.num_hidden_layers}; write that or less"
        )
    config.num_hidden_layers = layers
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        config.layer_types = list(kinds)[:layers]
    return config
