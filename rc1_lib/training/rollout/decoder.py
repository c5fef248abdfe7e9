"""What a rollout needs of a model: admit rows, generate, pause and resume; and which models and devices can do it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from rc1_lib.config.training import Training
from rc1_lib.errors import RC1Error


class RolloutError(RC1Error):
    """A model, prompt or setting with which no episode can be played."""


class Decoding(StrEnum):
    """Layout of the KV cache."""

    GROWING = "growing"
    """As long as the longest row. All rows end at the same slot, so the least is read."""
    SLOTS = "slots"
    """One slot for every position of every row, allocated once, so nothing moves between two tokens."""
    GRAPHS = "graphs"
    """Slots, with a CUDA graph of a decoding step for each of a few sizes."""


class Decoder(ABC):
    """A model with the KV caches of live rows, which generate, and of paused rows."""

    def __init__(self, model: PreTrainedModel, pad_id: int) -> None:
        """Keep a causal model, which must be called inside `running`, and a token id for padding."""
        self._model, self._pad_id, self._device = model, pad_id, model.device
        self._last: tuple[Tensor, Tensor] | None = None
        self._states_BD: Tensor | None = None

    @abstractmethod
    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Feed one token to every live row and return the next logits: [B, V], valid until the next call."""

    @abstractmethod
    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Prefill prompts as new live rows after the existing ones, and return the next logits of each: [B, V]."""

    @abstractmethod
    def regroup(self, kept: list[int], paused: list[int]) -> list[int]:
        """Keep the live rows `kept`, pause those in `paused` in this order, and drop all others.

        Returns:
            The old index of the row that is now at each place.
        """

    @abstractmethod
    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to all paused rows, which become live after the others, and return their next logits: [B, V].

        Args:
            tokens: of each row, in the order in which they were paused; lengths may differ.
            positions: of the first token of each row.
        """

    def close(self) -> None:
        """Free the KV cache and the states. The decoder cannot be used afterwards."""
        self._last = self._states_BD = None

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Put the model in evaluation mode without gradients. Only this decoder may call it inside the context."""
        model, training = self._model, self._model.training
        head: nn.Module = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        hook = head.register_forward_pre_hook(self._last_only)
        model.train(False)
        try:
            with torch.inference_mode():
                yield self
        finally:
            hook.remove()
            self.close()
            model.train(training)

    def states(self) -> Tensor:
        """Return the hidden states of the last logits: [B, D]."""
        assert self._states_BD is not None, "nothing was fed yet"
        return self._states_BD

    def _last_only(self, head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass only each row's last position to the vocabulary projection, the most expensive layer."""
        assert self._last is not None, "only this decoder may call the model inside `running`"
        hidden_BTD: Tensor = inputs[0]
        self._states_BD = hidden_BTD[self._last]
        return (self._states_BD[:, None], *inputs[1:])

    def _forward(self, ids_BT: Tensor, last_B: Tensor, **more: Any) -> Tensor:
        """Return the logits [B, V] after each row's last token, which is at index `last_B`."""
        self._last = (torch.arange(len(ids_BT), device=self._device), last_B)
        logits: Tensor = self._model(input_ids=ids_BT, use_cache=True, **more).logits
        return logits[:, 0]

    def _padded(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Pad token ids on the right to [B, T]."""
        width = max(map(len, tokens))
        return self._tensor([[*each, *[self._pad_id] * (width - len(each))] for each in tokens])

    def _tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


def order_after(rows: int, kept: list[int]) -> list[int]:
    """Return which row is at each place when only `kept` of `rows` rows remain and the last ones fill the gaps."""
    assert kept == sorted(set(kept)), "kept rows must be in increasing order"
    assert not kept or 0 <= kept[0] <= kept[-1] < rows, "a kept row is out of range"
    stay = set(kept)
    fill = [row for row in kept if row >= len(kept)]
    return [place if place in stay else fill.pop() for place in range(len(kept))]


ATTENTION = {"full_attention", "sliding_attention"}
"""Kinds of layers whose state is only keys and values."""


def context_of(shape: PretrainedConfig) -> int:
    """Return the context length of a model.

    Raises:
        RolloutError: if it has other layers than attention, or no fixed context length.
    """
    config = shape.get_text_config()
    odd = sorted(set(getattr(config, "layer_types", None) or ()) - ATTENTION)
    context = getattr(config, "max_position_embeddings", None)
    if odd or not isinstance(context, int):
        found = f"layers of kind {', '.join(odd)}" if odd else "no 'max_position_embeddings'"
        raise RolloutError(
            f"the model's configuration ('{config.model_type}') has {found}, expected only attention layers and a "
            "bound on positions; use another model"
        )
    return context


def longest_dialogue(training: Training, shape: PretrainedConfig) -> int:
    """Return the number of tokens of the longest possible dialogue: the prompt and all that the policy may generate.

    Raises:
        RolloutError: see `context_of`.
    """
    return min(context_of(shape), training.max_tokens + training.limits.tokens)


def check_decoding(kind: Decoding, device: torch.device) -> None:
    """Reject a decoder that does not run on this device.

    Raises:
        RolloutError: naming both.
    """
    if kind is Decoding.GRAPHS and device.type != "cuda":
        raise RolloutError(
            "training.rollout.decoder: found 'graphs', which needs cuda, but the policy is on the device "
            f"'{device.type}'; use growing or slots"
        )


def check_shape(kind: Decoding, shape: PretrainedConfig) -> None:
    """Reject a model that does not work with a decoder.

    Raises:
        RolloutError: naming the part of its configuration that prevents it.
    """
    context_of(shape)
    if kind is not Decoding.GROWING:
        check_sees_everything(shape)


def check_sees_everything(shape: PretrainedConfig) -> None:
    """Reject a model with sliding-window attention.

    Raises:
        RolloutError: if it has such layers.
    """
    config = shape.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if window is not None or kinds - {"full_attention"}:
        raise RolloutError(
            f"training.rollout.decoder: the model's configuration ('{config.model_type}') has layers that attend to a "
            f"window of {window} tokens, expected full attention; set it to growing"
        )
