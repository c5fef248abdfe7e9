"""Drawing tokens: one uniform number a token, which depends on the row alone."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rc1_lib.training.device import to_device
from rc1_lib.training.diverged import DivergedError

BLOCK = 64
"""Neighbouring tokens whose probabilities are added first: only one block of each row is searched token by token."""


def uniforms(seed: int, iteration: int, key: str, count: int) -> NDArray[np.float64]:
    """The first `count` numbers in [0, 1) of a row: float64 [count].

    They hang on nothing but the three arguments, so a row draws the same whatever else is in its batch and
    however the rows are ordered. A longer stream begins with the shorter one.
    """
    digest = hashlib.blake2b(f"{seed}\n{iteration}\n{key}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little"))).random(count)


def draw(logits_BV: Tensor, uniforms_B: NDArray[np.float64], temperature: float) -> tuple[list[int], list[float]]:
    """One token for each row and its log-probability.

    The distribution function is inverted in float64: the token is the first whose cumulated probability exceeds the
    row's number. Nothing is cut from the distribution (no top-k, no top-p), because a ratio of probabilities between
    two policies is only defined where both can sample the token.

    Args:
        logits_BV: any float type.
        uniforms_B: a number in [0, 1) for each row.
        temperature: the logits are divided by it; at 0 the most probable token is taken, and its log-probability is
            that of temperature 1, since that of a certainty would say nothing.

    Returns:
        Tokens, and natural log-probabilities under the distribution sampled from.

    Raises:
        DivergedError: when logits are not finite.
    """
    scaled_BV = logits_BV.float()
    if temperature not in (0.0, 1.0):
        scaled_BV = scaled_BV / temperature
    top_B, best_B = scaled_BV.max(dim=-1)
    weights_BNW = _weights(scaled_BV, top_B)
    # What is in float64 is on the CPU: MPS has no such numbers, and there are but a few for each row.
    sums_BN = weights_BNW.sum(dim=-1).cpu().double().cumsum(dim=-1)
    if not bool(torch.isfinite(sums_BN[:, -1]).all()):
        raise DivergedError(
            "the model's logits are not finite while it generates; expected numbers. The weights have diverged: go "
            "back to an earlier checkpoint and train with a lower learning rate or a smaller gradient norm"
        )
    tokens_B = best_B if temperature == 0.0 else _invert(weights_BNW, sums_BN, torch.from_numpy(uniforms_B))
    chosen_B = scaled_BV.gather(-1, to_device(tokens_B, scaled_BV.device)[:, None])[:, 0]
    logprobs_B = chosen_B.cpu().double() - top_B.cpu() - sums_BN[:, -1].log()
    return tokens_B.tolist(), logprobs_B.tolist()


def _weights(scaled_BV: Tensor, top_B: Tensor) -> Tensor:
    """Probabilities times a constant for each row, in blocks of neighbours: [B, blocks, W], zeros after the last."""
    rows, vocabulary = scaled_BV.shape
    blocks = -(-vocabulary // BLOCK)
    weights_BNW = scaled_BV.new_zeros((rows, blocks, BLOCK))
    torch.exp(scaled_BV - top_B[:, None], out=weights_BNW.view(rows, -1)[:, :vocabulary])
    return weights_BNW


def _invert(weights_BNW: Tensor, sums_BN: Tensor, uniforms_B: Tensor) -> Tensor:
    """The tokens at which the cumulated weights first exceed a share of their total: first the block, then in it.

    Only the weights are on the model's device.
    """
    target_B = uniforms_B * sums_BN[:, -1]
    block_B = _first_above(sums_BN, target_B)
    rows, device = torch.arange(len(target_B)), weights_BNW.device
    inside_BW = weights_BNW[to_device(rows, device), to_device(block_B, device)].cpu().double().cumsum(dim=-1)
    before_B = torch.where(block_B > 0, sums_BN[rows, block_B - 1], 0.0)
    return block_B * BLOCK + _first_above(inside_BW, target_B - before_B)


def _first_above(cumulated_BN: Tensor, target_B: Tensor) -> Tensor:
    """The first place of each row whose value exceeds the target; never one that adds nothing."""
    # Rounding may lift a target to the last value; the largest number below it then finds the last place that adds.
    highest_B = torch.nextafter(cumulated_BN[:, -1], torch.zeros_like(target_B))
    target_B = torch.minimum(target_B, highest_B).clamp(min=0.0)
    return torch.searchsorted(cumulated_BN, target_B[:, None], right=True)[:, 0]
