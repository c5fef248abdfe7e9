"""Whether tokens were sampled with the probabilities that they are learned with.

Sampling runs on merged weights, with a cache, in batches of other shapes; learning reads whole episodes with the
adapter apart. Before an update's first step both are the same policy. What its first minibatch finds between the two
costs nothing more to know, and is rounding alone, unless weights are stale, positions slip or a kernel is at fault.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from rc1_lib.config.episodes import Parity
from rc1_lib.errors import RC1Error
from rc1_lib.training.updates.losses import FAR


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
