"""Metrics of an update, named as in TRL and verl, and the parity check between sampling and training.

Sampling runs on merged weights with a KV cache, in batches of other shapes. Training runs whole episodes with a
separate adapter. Before the first optimizer step both are the same policy, so their log-probabilities may differ only
by rounding. A larger difference means stale weights, shifted positions or a broken kernel. The first minibatch measures
it for free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from rc1_lib.config.episodes import Parity
from rc1_lib.errors import RC1Error
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.losses import FAR, kl_k1, kl_k3


class Tally:
    """Sums over action tokens."""

    def __init__(self) -> None:
        """Start empty."""
        self.sums: dict[str, float] = {}
        self.tokens = 0
        self.minibatches = 0

    def add(self, sums: Mapping[str, Tensor | float], tokens: int) -> None:
        """Add the sums over some action tokens."""
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        self.tokens += tokens

    def add_minibatch(self, minibatch: Tally) -> None:
        """Add the tally of a whole minibatch."""
        self.add(minibatch.sums, minibatch.tokens)
        self.minibatches += 1

    def mean(self, name: str) -> float:
        """Return a sum's mean per action token."""
        return self.sums[name] / self.tokens

    def minibatch_mean(self, name: str) -> float:
        """Return a sum's mean per minibatch."""
        return self.sums[name] / self.minibatches

    def metrics(self) -> dict[str, float]:
        """Return means per action token, and losses as means per minibatch.

        `policy/approxkl_avg` is the k3 estimate. TRL reports half the squared log-ratio, which is equal to second
        order. `val/ratio_var` is the variance of the ratio over tokens.
        """
        ratio = self.mean("ratio")
        return {
            "loss": self.minibatch_mean("loss"),
            "loss/policy_avg": self.minibatch_mean("policy_loss"),
            "policy/approxkl_avg": self.mean("approxkl"),
            "policy/clipfrac_avg": self.mean("clipped"),
            "policy/entropy_avg": self.mean("entropy"),
            "ratio": ratio,
            "val/ratio": ratio,
            "val/ratio_var": max(self.mean("ratio_squared") - ratio * ratio, 0.0),
        }


def episode_metrics(batch: EpisodeBatch, ref_logprobs_BT: Tensor, kl_coef: float) -> dict[str, float]:
    """Return metrics of an iteration's episodes, before anything is learned from them.

    `objective/kl` and `objective/entropy` (from the log-probabilities of the sampled tokens) are sums over an episode,
    averaged over episodes, as in TRL. `kl` is `objective/kl`. `objective/scores_std` is the deviation of what training
    learns from: the scores less those expected of an episode's kind.
    """
    mask, episodes = batch.action_mask, len(batch)
    logprobs, ref = batch.old_logprobs[mask], ref_logprobs_BT[mask]
    k1 = float(kl_k1(logprobs, ref).sum()) / episodes
    scores = batch.scores.cpu().double()  # MPS has no float64
    return {
        "kl": k1,
        "objective/kl": k1,
        "objective/kl_k3": float(kl_k3(logprobs, ref).sum()) / episodes,
        "objective/kl_per_token": k1 * episodes / len(logprobs),
        "objective/kl_coef": kl_coef,
        "objective/entropy": -float(logprobs.sum()) / episodes,
        "objective/scores": float(scores.mean()),
        "objective/scores_std": float((scores - batch.expected.cpu().double()).std(correction=0)),
        "response_length/mean": len(logprobs) / episodes,
    }


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """Compute 1 - Var(returns - values) / Var(returns); NaN if all returns are equal."""
    wide_values, wide_returns = values.cpu().double(), returns.cpu().double()
    spread = float(torch.var(wide_returns, correction=0))
    if spread == 0:
        return math.nan
    return 1 - float(torch.var(wide_returns - wide_values, correction=0)) / spread


class ParityError(RC1Error):
    """Sampling and training disagree on the log-probabilities of the same tokens."""


def distance(sampled_N: Tensor, read_N: Tensor) -> dict[str, float]:
    """Measure the distance between log-probabilities at sampling and in training."""
    off_N = (read_N - sampled_N).abs()
    return {
        "policy/sampling_gap": float(off_N.mean()),
        "policy/sampling_far": float((off_N > FAR).float().mean()),
    }


def larger_distance(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Return the larger value of each metric of two distances; NaN if either is NaN.

    Args:
        one: from `distance`.
        other: another distance, possibly among other metrics.
    """
    return {
        name: math.nan if math.isnan(value) or math.isnan(other[name]) else max(value, other[name])
        for name, value in one.items()
    }


def check_parity(metrics: Mapping[str, float], bounds: Parity, step: int) -> None:
    """Check that sampling and training agree on the log-probabilities of the same tokens.

    Args:
        metrics: of an update, including `policy/sampling_gap` and `policy/sampling_far`.
        step: number of finished steps.

    Raises:
        ParityError: with both metrics and their bounds.
    """
    gap, far = metrics["policy/sampling_gap"], metrics["policy/sampling_far"]
    if gap <= bounds.mean and far <= bounds.far_share:
        return
    raise ParityError(
        f"step {step + 1}: sampling and training disagree on the probabilities of the same tokens: |log p| differs by "
        f"{gap:.2g} nats on average (at most {bounds.mean:g}, training.parity.mean), and by more than {FAR:g} at "
        f"{far:.2%} of the tokens (at most {bounds.far_share:.2%}, training.parity.far_share). This step is discarded. "
        f"Run the same command again to resume from the newest checkpoint. If it fails here again, sampling and "
        f"training use different weights, or the device rounds more than the bounds allow"
    )
