"""The decoder that the configuration names, around one model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from rc1_lib.config.training import Training
from rc1_lib.training.rollout.decoder import Decoder
from rc1_lib.training.rollout.growing_decoder import GrowingDecoder
from rc1_lib.training.rollout.settings import Decoding, RolloutError
from rc1_lib.training.rollout.slot_decoder import CudaGraphs, SlotDecoder, check_sees_everything

ATTENTION = {"full_attention", "sliding_attention"}
"""Kinds of layers whose state is keys and values of every slot."""


def context_of(shape: PretrainedConfig) -> int:
    """How many tokens a dialogue with a model of this configuration may have.

    Raises:
        RolloutError: when its state is not keys and values of so many tokens.
    """
    config = shape.get_text_config()
    odd = sorted(set(getattr(config, "layer_types", None) or ()) - ATTENTION)
    context = getattr(config, "max_position_embeddings", None)
    if odd or not isinstance(context, int):
        found = f"layers of kind {', '.join(odd)}" if odd else "no 'max_position_embeddings'"
        raise RolloutError(
            f"the model's configuration ('{config.model_type}') has {found}, expected attention layers alone and a "
            f"bound on positions; take a model whose layers all attend"
        )
    return context


def longest_dialogue(training: Training, shape: PretrainedConfig) -> int:
    """Tokens of the longest dialogue there can be: what is read, and all that the policy may say.

    Raises:
        RolloutError: see `context_of`.
    """
    return min(context_of(shape), training.max_tokens + training.limits.tokens)


def decoder_of(model: PreTrainedModel, pad_id: int, rows: int, kind: Decoding) -> Decoder:
    """A decoder of that kind.

    Raises:
        RolloutError: when the model is none that it takes, or is not where it works.
    """
    match kind:
        case Decoding.GROWING:
            return GrowingDecoder(model, pad_id, rows)
        case Decoding.SLOTS:
            return SlotDecoder(model, pad_id, rows)
        case Decoding.GRAPHS:
            check_decoding(kind, model.device)
            return SlotDecoder(model, pad_id, rows, CudaGraphs().record)


def check_decoding(kind: Decoding, device: torch.device) -> None:
    """Refuse a decoder that this device does not have.

    Raises:
        RolloutError: naming both.
    """
    if kind is Decoding.GRAPHS and device.type != "cuda":
        raise RolloutError(
            f"training.rollout.decoder: found 'graphs', but the policy is on the device '{device.type}', and only cuda "
            f"has them; take growing or slots"
        )


def check_shape(kind: Decoding, shape: PretrainedConfig) -> None:
    """Refuse a model that a decoder cannot sample with.

    Raises:
        RolloutError: naming what of its configuration is in the way.
    """
    context_of(shape)
    if kind is not Decoding.GROWING:
        check_sees_everything(shape)


@contextmanager
def decoding(model: PreTrainedModel, pad_id: int, rows: int, kind: Decoding) -> Iterator[Decoder]:
    """A decoder of `model`, which is in evaluation mode and without gradients while the block lasts.

    Raises:
        RolloutError: when the model is none that such a decoder takes, or is not where it works.
    """
    training = model.training
    decoder = decoder_of(model, pad_id, rows, kind)
    head: nn.Module = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    hook = head.register_forward_pre_hook(decoder.last_only)
    model.train(False)
    try:
        with torch.inference_mode():
            yield decoder
    finally:
        hook.remove()
        decoder.close()
        model.train(training)
