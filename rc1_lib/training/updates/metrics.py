"""What an update reports under the names that users of TRL and verl know, and whether sampling and learning agree.

Sampling runs on merged weights, with a cache, in batches of other shapes; learning reads whole episodes with the
adapter apart. Before an update's first step both are the same policy. What its first minibatch finds between the two
costs nothing more to know, and is rounding alone, unless weights are stale, positions slip or a kernel is at fault.
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
    """Sums over the own tokens of what was looked at."""

    def __init__(self) -> None:
        """Empty."""
        self.sums: dict[str, float] = {}
        self.tokens = 0
        self.minibatches = 0

    def add(self, sums: Mapping[str, Tensor | float], tokens: int) -> None:
        """Adds the sums of so many own tokens."""
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        self.tokens += tokens

    def add_up(self, other: Tally) -> None:
        """Adds all of a part."""
        self.add(other.sums, other.tokens)

    def absorb(self, minibatch: Tally) -> None:
        """Adds all of one minibatch."""
        self.add_up(minibatch)
        self.minibatches += 1

    def mean(self, name: str) -> float:
        """A sum's mean per own token."""
        return self.sums[name] / self.tokens

    def each(self, name: str) -> float:
        """A sum's mean per minibatch."""
        return self.sums[name] / self.minibatches

    def metrics(self) -> dict[str, float]:
        """Means per own token, the losses per minibatch.

        `policy/approxkl_avg` is the k3 estimate; TRL reports half the squared log-ratio, equal to second order.
        `val/ratio_var` is the variance of the ratio over tokens.
        """
        ratio = self.mean("ratio")
        return {
            "loss": self.each("loss"),
            "loss/policy_avg": self.each("policy_loss"),
            "policy/approxkl_avg": self.mean("approxkl"),
            "policy/clipfrac_avg": self.mean("clipped"),
            "policy/entropy_avg": self.mean("entropy"),
            "ratio": ratio,
            "val/ratio": ratio,
            "val/ratio_var": max(self.mean("ratio_squared") - ratio * ratio, 0.0),
        }


def episode_metrics(batch: EpisodeBatch, ref_logprobs_BT: Tensor, kl_coef: float) -> dict[str, float]:
    """What the episodes of an iteration were like, before anything was learned from them.

    `objective/kl`, `objective/entropy` (from the log-probabilities of the sampled tokens) and
    `objective/non_score_reward` are sums over an episode, averaged over episodes, as in TRL; `kl` is `objective/kl`.
    """
    mask, episodes = batch.action_mask, len(batch)
    logprobs, ref = batch.old_logprobs[mask], ref_logprobs_BT[mask]
    k1 = float(kl_k1(logprobs, ref).sum()) / episodes
    scores = batch.scores.cpu().double()  # the CPU has float64, MPS has none
    return {
        "kl": k1,
        "objective/kl": k1,
        "objective/kl_k3": float(kl_k3(logprobs, ref).sum()) / episodes,
        "objective/kl_per_token": k1 * episodes / len(logprobs),
        "objective/kl_coef": kl_coef,
        "objective/entropy": -float(logprobs.sum()) / episodes,
        "objective/scores": float(scores.mean()),
        "objective/scores_std": float(scores.std(correction=0)),
        "objective/non_score_reward": -kl_coef * k1,
        "objective/rlhf_reward": float(scores.mean()) - kl_coef * k1,
        "response_length/mean": len(logprobs) / episodes,
    }


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - Var(returns - values) / Var(returns); NaN where the returns are all equal."""
    wide_values, wide_returns = values.cpu().double(), returns.cpu().double()
    spread = float(torch.var(wide_returns, correction=0))
    if spread == 0:
        return math.nan
    return 1 - float(torch.var(wide_returns - wide_values, correction=0)) / spread


class ParityError(RC1Error):
    """Sampling and learning have come apart."""


def distance(sampled_N: Tensor, read_N: Tensor) -> dict[str, float]:
    """How far log-probabilities that tokens were sampled with are from those that they are learned with."""
    off_N = (read_N - sampled_N).abs()
    return {
        "policy/sampling_gap": float(off_N.mean()),
        "policy/sampling_far": float((off_N > FAR).float().mean()),
    }


def farther(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The larger of two distances, figure by figure; NaN where either is that.

    Args:
        one: a `distance`.
        other: another, among whatever else was measured.
    """
    return {
        name: math.nan if math.isnan(value) or math.isnan(other[name]) else max(value, other[name])
        for name, value in one.items()
    }


def check_parity(metrics: Mapping[str, float], bounds: Parity, step: int) -> None:
    """Refuse to go on where sampling and learning disagree on the probabilities of the same tokens.

    Args:
        metrics: of an update, `policy/sampling_gap` and `policy/sampling_far` among them.
        bounds: of both.
        step: finished ones.

    Raises:
        ParityError: naming both figures and their bounds.
    """
    gap, far = metrics["policy/sampling_gap"], metrics["policy/sampling_far"]
    if gap <= bounds.mean and far <= bounds.far_share:
        return
    raise ParityError(
        f"step {step + 1}: its tokens were sampled with other probabilities than they are learned with: |log p| "
        f"differs by {gap:.2g} nats on average (at most {bounds.mean:g}, training.parity.mean), and by more than "
        f"{FAR:g} at {far:.2%} of the tokens (at most {bounds.far_share:.2%}, training.parity.far_share). Nothing of "
        f"this step is kept. The same command goes on from the newest checkpoint; where it ends here again, the "
        f"weights that sample are not those that learn, or the device rounds more than the bounds grant"
    )
