"""Parts of a loss: KL estimates and coefficient, token rewards and advantages, surrogate, entropy, values.

Losses are sums over tokens, divided by a normaliser that the caller fixes. A mean over each micro-batch would weight a
token by how many others share its micro-batch, and so give less weight to long episodes, which are the ones that ask.
One normaliser for the whole iteration gives every token the same weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def kl_k1(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Estimate KL(p, q) as log p - log q of a token sampled from p: unbiased, but can be negative.

    Source: Schulman, "Approximating KL Divergence" (2020).

    Args:
        logprobs: of sampled tokens under the policy p, any shape.
        ref_logprobs: of the same tokens under the reference q, same shape.
    """
    return logprobs - ref_logprobs


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """Estimate KL(p, q) as (q/p - 1) - log(q/p) of a token sampled from p: unbiased and never negative.

    Source: Schulman, "Approximating KL Divergence" (2020). Shapes as in `kl_k1`.
    """
    log_ratio = ref_logprobs - logprobs
    return torch.expm1(log_ratio) - log_ratio


KL_GAIN, KL_BOUND = 0.1, 0.2
"""How strongly the coefficient reacts to the relative error (KL / target - 1), and the bound of the error: those of
Ziegler et al., see `AdaptiveKL`."""
KL_RANGE = 10.0
"""The factor by which the coefficient may leave the initial one."""


class FixedKL:
    """A constant KL coefficient; 0 trains without the KL term."""

    def __init__(self, coef: float) -> None:
        """Set the coefficient, at least 0."""
        if not coef >= 0:
            raise ValueError(f"the KL coefficient is {coef}, expected at least 0")
        self.coef = coef

    def update(self, kl: float) -> None:
        """Do nothing."""

    def state_dict(self) -> dict[str, float]:
        """Return the coefficient."""
        return {"coef": self.coef}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore the coefficient."""
        self.coef = state["coef"]


class AdaptiveKL(FixedKL):
    """A proportional controller: the coefficient grows while the KL is above its target, and shrinks while it is below.

        error = clip(KL / target - 1, -KL_BOUND, KL_BOUND);  coef <- coef * (1 + KL_GAIN * error)

    Source: Ziegler et al., "Fine-Tuning Language Models from Human Preferences" (2019), section 2.2. Here the
    coefficient stays within a factor of `KL_RANGE` of the initial one: a long run that begins below its target would
    otherwise leave the KL without a price, and need as long to find it again.
    """

    def __init__(self, coef: float, *, target: float) -> None:
        """Set the initial coefficient, which must be above 0, because 0 would stay 0.

        Args:
            target: target of the mean KL per action token, in nats, above 0.
        """
        super().__init__(coef)
        self._least, self._most = coef / KL_RANGE, coef * KL_RANGE
        if not (coef > 0 and target > 0):
            raise ValueError(f"an adaptive KL needs a coefficient and a target above 0; found {coef} and {target}")
        self.target = target

    def update(self, kl: float) -> None:
        """Adjust the coefficient once, given an iteration's mean KL per action token in nats."""
        error = min(max(kl / self.target - 1, -KL_BOUND), KL_BOUND)
        self.coef = min(max(self.coef * (1 + KL_GAIN * error), self._least), self._most)


def kl_control(coef: float, target: float, *, fixed: bool = False) -> FixedKL:
    """Create the KL coefficient of a run.

    Args:
        coef: initial coefficient; 0 stays 0.
        target: target of the mean KL per action token, in nats.
        fixed: keep it constant, as some engines do.
    """
    return FixedKL(coef) if fixed or coef == 0 else AdaptiveKL(coef, target=target)


FAR = 0.1
"""Difference in nats between two log-probabilities of a token that counts as far: ratios outside 0.905 to 1.105."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss and the sums to report with it.

    Attributes:
        loss: a scalar with a graph for the backward pass.
        sums: detached scalars, each a sum over tokens, so that those of micro-batches can be added.
    """

    loss: Tensor
    sums: dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The surrogate objective per token.

    Attributes:
        gains: (N,), to be maximised.
        sums: as in `Loss`.
    """

    gains: Tensor
    sums: dict[str, Tensor]


def clipped_surrogate(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, clip: float) -> Surrogate:
    """Compute min(ratio * A, clip(ratio, 1 - clip, 1 + clip) * A) of every token.

    Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017).

    Args:
        logprobs: (N,), of action tokens under the current policy.
        old_logprobs: (N,), of the same tokens at sampling.
        advantages: (N,).
        clip: above 0.

    Returns:
        The gains, and sums of: `ratio`, `ratio_squared`, `approxkl` (k3 estimate of the KL between the sampling and the
        current policy, never negative), `gap` (absolute log-ratio), `far` (tokens whose log-ratio exceeds `FAR`),
        `clipped` (tokens whose gradient was cut by the clipping).
    """
    log_ratio = logprobs - old_logprobs
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1 - clip, 1 + clip) * advantages
    with torch.no_grad():
        sums = {
            "ratio": ratio.sum(),
            "ratio_squared": ratio.square().sum(),
            "approxkl": kl_k3(old_logprobs, logprobs).sum(),
            "gap": log_ratio.abs().sum(),
            "far": (log_ratio.abs() > FAR).sum().to(plain.dtype),
            "clipped": (clipped < plain).sum().to(plain.dtype),
        }
    return Surrogate(torch.minimum(plain, clipped), sums)


def token_rewards(scores_B: Tensor, kl_BT: Tensor, mask_BT: Tensor, kl_coef: float) -> Tensor:
    """Compute rewards (B, T): -`kl_coef` * KL at each action token, plus the score at the last one; 0 elsewhere.

    Source: Ouyang et al., "Training language models to follow instructions with human feedback" (2022), section 3.4.

    Args:
        scores_B: (B,), score of each episode.
        kl_BT: (B, T), KL estimate at every token; ignored outside the mask.
        mask_BT: bool (B, T), at least one True in each row.
        kl_coef: at least 0.
    """
    rewards_BT = torch.where(mask_BT, -kl_coef * kl_BT, 0.0)
    rows = torch.arange(len(mask_BT), device=mask_BT.device)
    rewards_BT[rows, last_action(mask_BT)] += scores_B
    return rewards_BT


def last_action(mask_BT: Tensor) -> Tensor:
    """Return the index (B,) of each row's last action token."""
    places_T = torch.arange(mask_BT.shape[1], device=mask_BT.device)
    return torch.where(mask_BT, places_T, -1).amax(dim=1)


def generalised_advantages(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, lam: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation over action tokens only.

    The value of an action token is that of the state before it. Tokens between two action tokens, such as an
    observation, belong to the step of the first: the next state of an action token is at the next action token, however
    far. The episode ends at its last action token. Every end, including limits, is part of the task, so there is no
    bootstrapping. Nothing is discounted: the score comes at the end, and a long answer must not count less than a short
    one.

    Source: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2016).

    Args:
        rewards_BT: (B, T); ignored outside the mask.
        values_BT: (B, T), at each action token the value of the state before it; ignored outside the mask.
        mask_BT: bool (B, T), the action mask.
        lam: 0 relies on the values, 1 on the rewards.

    Returns:
        Advantages and returns (advantage + value), both (B, T) and 0 outside the mask.
    """
    advantages_BT = torch.zeros_like(rewards_BT)
    advantage_B = torch.zeros_like(rewards_BT[:, 0])
    next_value_B = torch.zeros_like(advantage_B)
    for step in reversed(range(rewards_BT.shape[1])):
        mask_B, value_B = mask_BT[:, step], values_BT[:, step]
        delta_B = rewards_BT[:, step] + next_value_B - value_B
        advantage_B = torch.where(mask_B, delta_B + lam * advantage_B, advantage_B)
        next_value_B = torch.where(mask_B, value_B, next_value_B)
        advantages_BT[:, step] = torch.where(mask_B, advantage_B, 0.0)
    return advantages_BT, torch.where(mask_BT, advantages_BT + values_BT, 0.0)


EPSILON = 1e-8
"""Added to the variance, so that equal numbers become zeros instead of NaN."""


def whiten(numbers: Tensor, mask: Tensor) -> Tensor:
    """Normalise numbers to mean 0 and (population) variance 1 over the mask; 0 outside it.

    Args:
        numbers: any shape; ignored outside the mask.
        mask: bool, same shape, at least one True.
    """
    variance, mean = torch.var_mean(numbers[mask], correction=0)
    return torch.where(mask, (numbers - mean) * torch.rsqrt(variance + EPSILON), 0.0)


def policy_loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, clip: float, normaliser: float) -> Loss:
    """Compute -(sum of the clipped surrogate) / normaliser, see `clipped_surrogate`.

    Args:
        logprobs: (N,), of action tokens under the current policy.
        old_logprobs: (N,), of the same tokens at sampling.
        advantages: (N,).
        clip: above 0.
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss, with sums `policy_loss` and those of the surrogate.
    """
    surrogate = clipped_surrogate(logprobs, old_logprobs, advantages, clip=clip)
    loss = -surrogate.gains.sum() / normaliser
    return Loss(loss, {"policy_loss": loss.detach(), **surrogate.sums})


def value_loss(values: Tensor, returns: Tensor, *, normaliser: float) -> Loss:
    """Compute half the squared error of the values.

    Args:
        values: (N,), current values of the states before action tokens.
        returns: (N,).
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss, with the sum `value_loss`.
    """
    loss = 0.5 * (values - returns).square().sum() / normaliser
    return Loss(loss, {"value_loss": loss.detach()})
