"""What a rollout needs of a model: admit rows, generate, pause and resume; and which models can do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from rc1_lib.config.training import Training
from rc1_lib.errors import RC1Error
from rc1_lib.training.rollout.growing_cache import GrowingCache, order_after


class RolloutError(RC1Error):
    """A model, prompt or setting with which no episode can be played."""


class Decoder:
    """A model with the KV caches of live rows, which generate, and of paused rows."""

    def __init__(self, model: PreTrainedModel, pad_id: int, rows: int) -> None:
        """Keep a causal model, which must be called inside `running`.

        Args:
            pad_id: any valid token id, used for padding.
            rows: maximum number of live rows.
        """
        self._model, self._pad_id, self._room, self._device = model, pad_id, rows, model.device
        self._live = GrowingCache(0, self._device)
        self._paused: list[GrowingCache] = []
        self._last: tuple[Tensor, Tensor] | None = None
        self._states_BD: Tensor | None = None

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
            model.train(training)

    def step(self, tokens: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Feed one token to every live row and return the next logits: [B, V]."""
        return self._feed(self._live, [[token] for token in tokens], positions)

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Prefill prompts as new live rows after the existing ones, and return the next logits of each: [B, V]."""
        fresh = GrowingCache(len(prompts), self._device)
        logits_BV = self._feed(fresh, prompts, [0] * len(prompts))
        self._enter(fresh)
        return logits_BV

    def regroup(self, kept: list[int], paused: list[int]) -> list[int]:
        """Keep the live rows `kept`, pause those in `paused` in this order, and drop all others.

        Returns:
            The old index of the row that is now at each place.
        """
        if paused:
            self._paused.append(self._live.take(paused))
        order = order_after(self._live.rows, kept)
        self._live.keep(kept)
        return order

    def resume(self, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Feed tokens to all paused rows, which become live after the others, and return their next logits: [B, V].

        Args:
            tokens: of each row, in the order in which they were paused; lengths may differ.
            positions: of the first token of each row.
        """
        merged = GrowingCache.joined(self._paused, after=max(map(len, tokens)))
        self._paused = []
        logits_BV = self._feed(merged, tokens, positions)
        self._enter(merged)
        return logits_BV

    def states(self) -> Tensor:
        """Return the hidden states of the last logits: [B, D]."""
        assert self._states_BD is not None, "nothing was fed yet"
        return self._states_BD

    def _enter(self, cache: GrowingCache) -> None:
        if self._live.rows:
            self._live.join(cache, self._room)
        else:
            self._live = cache

    def _feed(self, cache: GrowingCache, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Tensor:
        """Append tokens to each row and return the logits [B, V] after each row's last one."""
        lengths = [len(each) for each in tokens]
        width = max(lengths)
        # Padding comes last, where no real token can see it, and is removed from the cache again.
        ids_BT = self._tensor([[*each, *[self._pad_id] * (width - len(each))] for each in tokens])
        last_B = self._tensor(lengths) - 1
        offsets_BT = torch.minimum(torch.arange(width, device=self._device), last_B[:, None])
        self._last = (torch.arange(len(tokens), device=self._device), last_B)
        logits_B1V: Tensor = self._model(
            input_ids=ids_BT,
            attention_mask=cache.mask(width),
            position_ids=self._tensor(positions)[:, None] + offsets_BT,
            past_key_values=cache,
            use_cache=True,
        ).logits
        cache.align([width - length for length in lengths])
        return logits_B1V[:, 0]

    def _last_only(self, head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass only each row's last position to the vocabulary projection, the most expensive layer."""
        assert self._last is not None, "only this decoder may call the model inside `running`"
        hidden_BTD: Tensor = inputs[0]
        self._states_BD = hidden_BTD[self._last]
        return (self._states_BD[:, None], *inputs[1:])

    def _tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


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
