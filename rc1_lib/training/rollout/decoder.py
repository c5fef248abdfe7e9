"""What a rollout asks of a model: rows that come, write, read and go; and which models and devices can do it."""

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
    """A model, a prompt or a setting with which no episode can be played."""


class Decoding(StrEnum):
    """Where keys and values are while rows write."""

    GROWING = "growing"
    """As many slots as the longest row has, which all rows end with: the least to read."""
    SLOTS = "slots"
    """A slot for every position of every row, allocated once: nothing moves between two tokens."""
    GRAPHS = "graphs"
    """Slots, and a CUDA graph of a step for each of a few sizes."""


class Decoder(ABC):
    """A model, the cache of the rows that write, and those of rows that are set aside."""

    def __init__(self, model: PreTrainedModel, pad_id: int) -> None:
        """Takes a causal model, fed inside `running`, and the token that fills up, whatever it is."""
        self._model, self._pad_id, self._device = model, pad_id, model.device
        self._last: tuple[Tensor, Tensor] | None = None
        self._states_BD: Tensor | None = None

    @abstractmethod
    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Feed one token to every live row and return the logits after it: [B, V], good until the next call."""

    @abstractmethod
    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read prompts as new rows after the live ones and return the logits after each: [B, V]."""

    @abstractmethod
    def part(self, kept: list[int], aside: list[int]) -> list[int]:
        """Go on with the live rows `kept`, set those in `aside` aside in this order, and drop all others.

        Returns:
            Which of the old live rows is in each place now.
        """

    @abstractmethod
    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to all rows aside, which become live after the others, and return the logits: [B, V].

        Args:
            tokens: of each row, in the order in which they were set aside; not all of one length.
            positions: of the first of them.
        """

    def close(self) -> None:
        """Let go of the keys and values, and of the states; the decoder is of no more use."""
        self._last = self._states_BD = None

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Inside, the model is in evaluation mode, without gradients, and fed by this decoder alone."""
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
        """The hidden states that the last logits were made of: [B, D]."""
        assert self._states_BD is not None, "nothing was fed yet"
        return self._states_BD

    def _last_only(self, head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave only each row's last position to the vocabulary projection, the dearest of all layers."""
        assert self._last is not None, "the model is only run by this decoder while the hook is on"
        hidden_BTD: Tensor = inputs[0]
        self._states_BD = hidden_BTD[self._last]
        return (self._states_BD[:, None], *inputs[1:])

    def _forward(self, ids_BT: Tensor, last_B: Tensor, **more: Any) -> Tensor:
        """The logits [B, V] after each row's last token, which is at `last_B`."""
        self._last = (torch.arange(len(ids_BT), device=self._device), last_B)
        logits: Tensor = self._model(input_ids=ids_BT, use_cache=True, **more).logits
        return logits[:, 0]

    def _padded(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Token ids [B, T], filled up after each row's."""
        width = max(map(len, tokens))
        return self._tensor([[*each, *[self._pad_id] * (width - len(each))] for each in tokens])

    def _tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


def order_after(rows: int, kept: list[int]) -> list[int]:
    """Which row is in each place once only `kept` of `rows` rows are left and the last ones fill the gaps."""
    assert kept == sorted(set(kept)), "rows are kept in order, each once"
    assert not kept or 0 <= kept[0] <= kept[-1] < rows, "a row that is kept is one of the rows"
    stay = set(kept)
    fill = [row for row in kept if row >= len(kept)]
    return [place if place in stay else fill.pop() for place in range(len(kept))]


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


def check_sees_everything(shape: PretrainedConfig) -> None:
    """Refuse a model whose tokens do not see all tokens before.

    Raises:
        RolloutError: when layers see a window only.
    """
    config = shape.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if window is not None or kinds - {"full_attention"}:
        raise RolloutError(
            f"training.rollout.decoder: the model's configuration ('{config.model_type}') has layers that see a window "
            f"of {window} tokens, expected layers that see all tokens before; set it to growing"
        )
