"""Whether a base can be trained as the configuration has it: told by its shape and the device, before it is loaded.

What of a configuration an engine has no use for whatever the base is, is told when it is read: `Learner.refusal`.
"""

from __future__ import annotations

import torch
from transformers import PretrainedConfig

from rc1_lib.config.engines import HEAD, adapts_head
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import model_without_weights, refuse_attention_dropout, refuse_strange_targets
from rc1_lib.training.rollout.decoding import check_decoding, check_shape
from rc1_lib.training.rollout.settings import Decoding

_FIGURES = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size",
)  # fmt: skip
"""What a shape is told by: its widths, and what its memory is estimated from."""


def check_figures(shape: PretrainedConfig) -> None:
    """Refuse a model whose shape is not told by the figures that Llama, Qwen3 and most others have.

    Raises:
        ConfigError: naming those that are missing.
    """
    text = shape.get_text_config()
    missing = [name for name in _FIGURES if not isinstance(getattr(text, name, None), int)]
    if missing:
        raise ConfigError(
            f"base_model: the config.json of '{shape.name_or_path}' (model_type '{shape.model_type}') has no number "
            f"for {', '.join(missing)}, by which RC1 tells what a model takes; give a base that is built as Qwen3 or "
            f"Llama are"
        )


def check_usable(config: RunConfig, shape: PretrainedConfig, device: torch.device) -> None:
    """Refuse what an engine of episodes would only stumble over when the warm start has been made.

    Args:
        config: of the run.
        shape: the base's own configuration.
        device: where it will be.

    Raises:
        RC1Error: when the device lacks the decoder, the decoder cannot sample with such a base, its shape is told by
            other figures, states of it cannot be computed again, or its adapter would be one of what is no linear
            layer or is the embedding too.
    """
    training = config.training
    decoder, targets = Decoding(training.rollout.decoder), training.adapter.targets
    check_decoding(decoder, device)
    check_shape(decoder, shape)
    check_figures(shape)
    if training.gradient_checkpointing:
        refuse_attention_dropout(shape)
    refuse_strange_targets(targets, config.base_model, model_without_weights(shape))
    tied = getattr(shape.get_text_config(), "tie_word_embeddings", False)
    if tied and adapts_head(targets):
        raise ConfigError(
            f"training.adapter.targets: found {HEAD}, which is the embedding too in this base (tie_word_embeddings in "
            f"its config.json): added to the weights, as tokens are sampled and a policy is handed over, its adapter "
            f"would change what is read as well; leave it out"
        )
