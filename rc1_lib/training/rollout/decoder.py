"""What a rollout needs of a model: admit rows, generate, pause and resume; and which models can do it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from rc1_lib.config.training import Training
from rc1_lib.errors import RC1Error
from rc1_lib.training.device import to_device
from rc1_lib.training.diverged import DivergedError
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


# Draw tokens, with one uniform number per token that depends only on its row.

BLOCK = 64
"""Tokens per block: probabilities are summed by block first, so that only one block of a row is searched by token."""


def uniforms(seed: int, iteration: int, key: str, count: int) -> NDArray[np.float64]:
    """Return the first `count` random numbers in [0, 1) of a row: float64 [count].

    They depend only on the other three arguments, so a row draws the same numbers whatever else is in its batch. A
    longer stream begins with the shorter one.
    """
    digest = hashlib.blake2b(f"{seed}\n{iteration}\n{key}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little"))).random(count)


def draw(logits_BV: Tensor, uniforms_B: NDArray[np.float64], temperature: float) -> tuple[list[int], list[float]]:
    """Draw one token for each row, and return the tokens with their log-probabilities.

    The cumulative distribution is inverted in float64: the token is the first whose cumulative probability exceeds the
    row's number. The distribution is not truncated (no top-k, no top-p), because a probability ratio of two policies is
    defined only if both can sample the token.

    Args:
        logits_BV: any float type.
        uniforms_B: a number in [0, 1) for each row.
        temperature: divides the logits. 0 takes the most probable token, and its log-probability is that of temperature
            1, because that of a certain token would be meaningless.

    Returns:
        Tokens, and natural log-probabilities under the distribution sampled from.

    Raises:
        DivergedError: if logits are not finite.
    """
    scaled_BV = logits_BV.float()
    if temperature not in (0.0, 1.0):
        scaled_BV = scaled_BV / temperature
    top_B, best_B = scaled_BV.max(dim=-1)
    weights_BNW = _weights(scaled_BV, top_B)
    # float64 is used only on the CPU, because MPS lacks it. Only few numbers per row are transferred.
    sums_BN = weights_BNW.sum(dim=-1).cpu().double().cumsum(dim=-1)
    if not bool(torch.isfinite(sums_BN[:, -1]).all()):
        raise DivergedError(
            "found logits that are not finite while generating. The weights have diverged: go back to an earlier "
            "checkpoint and train with a lower learning rate or a smaller gradient norm"
        )
    tokens_B = best_B if temperature == 0.0 else _invert(weights_BNW, sums_BN, torch.from_numpy(uniforms_B))
    chosen_B = scaled_BV.gather(-1, to_device(tokens_B, scaled_BV.device)[:, None])[:, 0]
    logprobs_B = chosen_B.cpu().double() - top_B.cpu() - sums_BN[:, -1].log()
    return tokens_B.tolist(), logprobs_B.tolist()


def _weights(scaled_BV: Tensor, top_B: Tensor) -> Tensor:
    """Compute unnormalised probabilities in blocks of BLOCK tokens: [B, blocks, W], padded with zeros."""
    rows, vocabulary = scaled_BV.shape
    blocks = -(-vocabulary // BLOCK)
    weights_BNW = scaled_BV.new_zeros((rows, blocks, BLOCK))
    torch.exp(scaled_BV - top_B[:, None], out=weights_BNW.view(rows, -1)[:, :vocabulary])
    return weights_BNW


def _invert(weights_BNW: Tensor, sums_BN: Tensor, uniforms_B: Tensor) -> Tensor:
    """Find the tokens at which the cumulative weights first exceed a share of their total: first the block, then in it.

    Only the weights are on the model's device.
    """
    target_B = uniforms_B * sums_BN[:, -1]
    block_B = _first_above(sums_BN, target_B)
    rows, device = torch.arange(len(target_B)), weights_BNW.device
    inside_BW = weights_BNW[to_device(rows, device), to_device(block_B, device)].cpu().double().cumsum(dim=-1)
    before_B = torch.where(block_B > 0, sums_BN[rows, block_B - 1], 0.0)
    return block_B * BLOCK + _first_above(inside_BW, target_B - before_B)


def _first_above(cumulated_BN: Tensor, target_B: Tensor) -> Tensor:
    """Return the first index in each row whose value exceeds the target; never one with weight 0."""
    # Rounding may raise a target to the total; the next smaller number then finds the last index with weight.
    highest_B = torch.nextafter(cumulated_BN[:, -1], torch.zeros_like(target_B))
    target_B = torch.minimum(target_B, highest_B).clamp(min=0.0)
    return torch.searchsorted(cumulated_BN, target_B[:, None], right=True)[:, 0]
