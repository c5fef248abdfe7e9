"""Draw tokens, with one uniform number per token that depends only on its row."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rc1_lib.training.device import to_device
from rc1_lib.training.diverged import DivergedError

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
