"""What a loss is made of: the KL and its price, rewards and advantages of tokens, surrogate, entropy, values.

Losses are sums over tokens divided by a normaliser that the caller fixes. A mean over each micro-batch would weigh a
token by how many others happen to share its micro-batch, and so under-weigh the long episodes, which are the ones that
ask. One normaliser for the whole iteration weighs every token alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.config.updates import Update


def kl_k1(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """The plain estimate log p - log q of KL(p, q) from a token sampled from p: unbiased, may be negative.

    Source: Schulman, "Approximating KL Divergence" (2020).

    Args:
        logprobs: of sampled tokens under the policy p, any shape.
        ref_logprobs: of the same tokens under the reference q, same shape.
    """
    return logprobs - ref_logprobs


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """The estimate (q/p - 1) - log(q/p) of KL(p, q) from a token sampled from p: unbiased and never negative.

    Source: Schulman, "Approximating KL Divergence" (2020). Shapes as in `kl_k1`.
    """
    log_ratio = ref_logprobs - logprobs
    return torch.expm1(log_ratio) - log_ratio


KL_BOUND = 0.2
"""The largest deviation of the KL from its target that counts, as a share of it."""


class FixedKL:
    """A coefficient that stays; 0 trains without the KL term."""

    def __init__(self, coef: float) -> None:
        """The coefficient, at least 0."""
        if not coef >= 0:
            raise ValueError(f"the KL coefficient is {coef}, expected at least 0")
        self.coef = coef

    def update(self, kl: float) -> None:
        """Changes nothing."""

    def state_dict(self) -> dict[str, float]:
        """The coefficient."""
        return {"coef": self.coef}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Takes the coefficient of `state`."""
        self.coef = state["coef"]


class AdaptiveKL(FixedKL):
    """A proportional controller: the coefficient grows while the KL is above its target and shrinks while below.

        error = clip(KL / target - 1, -bound, bound);  coef <- coef * (1 + gain * error)

    Source: Ziegler et al., "Fine-Tuning Language Models from Human Preferences" (2019), section 2.2, where the gain is
    0.1 and the bound 0.2.
    """

    def __init__(self, coef: float, *, target: float, gain: float, bound: float) -> None:
        """The first coefficient, above 0, since 0 would stay 0.

        Args:
            coef: where to start.
            target: mean KL per own token aimed at, in nats, above 0.
            gain: how strongly to correct, above 0.
            bound: the largest relative error reacted to, above 0; gain * bound below 1 keeps the coefficient positive.
        """
        super().__init__(coef)
        if not (coef > 0 and target > 0 and gain > 0 and bound > 0 and gain * bound < 1):
            raise ValueError(
                f"an adaptive KL coefficient needs a coefficient, target, gain and bound above 0 and gain * bound "
                f"below 1; found {coef}, {target}, {gain}, {bound}"
            )
        self.target, self.gain, self.bound = target, gain, bound

    def update(self, kl: float) -> None:
        """Moves the coefficient once, by an iteration's mean KL per own token in nats."""
        error = min(max(kl / self.target - 1, -self.bound), self.bound)
        self.coef *= 1 + self.gain * error


def kl_control(coef: float, target: float, update: Update, *, fixed: bool = False) -> FixedKL:
    """The coefficient that a configuration asks for.

    Args:
        coef: where to start.
        target: mean KL per own token aimed at, in nats.
        update: whether, and how, it is moved.
        fixed: the engine leaves it where it is.
    """
    if update.adaptive_kl and not fixed and coef > 0:
        return AdaptiveKL(coef, target=target, gain=update.kl_gain, bound=KL_BOUND)
    return FixedKL(coef)


FAR = 0.1
"""Nats between two log-probabilities of a token that count as far apart: the ratio leaves 0.905 to 1.105."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss with what is to be reported about it.

    Attributes:
        loss: a scalar to go backward from.
        sums: detached scalars, sums over tokens, so that those of micro-batches add up.
    """

    loss: Tensor
    sums: dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Surrogate:
    """What tokens gain, each by itself.

    Attributes:
        gains: (N,), to be made large.
        sums: as of a `Loss`.
    """

    gains: Tensor
    sums: dict[str, Tensor]


def clipped_surrogate(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, low: float, high: float
) -> Surrogate:
    """min(ratio * A, clip(ratio, 1 - low, 1 + high) * A) of every token.

    Sources: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), where both bounds are one; Yu et al.,
    "DAPO" (2025), section 3.1, where they are two.

    Args:
        logprobs: (N,), of own tokens under the policy now.
        old_logprobs: (N,), of the same tokens as sampled.
        advantages: (N,).
        low: above 0.
        high: above 0.

    Returns:
        The gains; sums `ratio`, `ratio_squared`, `approxkl` (the never negative k3 estimate of the KL between the
        policy as sampled and now), `gap` (absolute log-ratios), `far` (tokens whose log-ratio is beyond `FAR`),
        `clipped` (tokens whose gradient the clipping ended).
    """
    log_ratio = logprobs - old_logprobs
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1 - low, 1 + high) * advantages
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


def entropy_loss(entropies: Tensor, *, normaliser: float) -> Loss:
    """Minus the entropies (N,) of the distributions at own tokens; its sum `entropy` is the entropies' own."""
    return Loss(-entropies.sum() / normaliser, {"entropy": entropies.detach().sum()})


def token_rewards(scores_B: Tensor, kl_BT: Tensor, mask_BT: Tensor, kl_coef: float) -> Tensor:
    """Rewards (B, T): minus `kl_coef` times the KL at each own token, and the score at the last one; 0 elsewhere.

    Source: Ouyang et al., "Training language models to follow instructions with human feedback" (2022), section 3.4.

    Args:
        scores_B: (B,), what each episode was worth.
        kl_BT: (B, T), the KL's estimate at every token; what is at other tokens is not read.
        mask_BT: bool (B, T), at least one True in each row.
        kl_coef: at least 0.
    """
    rewards_BT = torch.where(mask_BT, -kl_coef * kl_BT, 0.0)
    rows = torch.arange(len(mask_BT), device=mask_BT.device)
    rewards_BT[rows, last_action(mask_BT)] += scores_B
    return rewards_BT


def last_action(mask_BT: Tensor) -> Tensor:
    """The index (B,) of each row's last own token."""
    places_T = torch.arange(mask_BT.shape[1], device=mask_BT.device)
    return torch.where(mask_BT, places_T, -1).amax(dim=1)


def generalised_advantages(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation over own tokens only.

    An action is an own token, its value that of the state before it. What comes between two own tokens, an observation
    for instance, belongs to the step of the first: the successor of an own token is the next own token, however far.
    The last own token is the end: every end of an episode, limits included, is part of the task, so nothing is
    expected after it.

    Source: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2016).

    Args:
        rewards_BT: (B, T), read at own tokens only.
        values_BT: (B, T), at each own token the value of the state before it; read at own tokens only.
        mask_BT: bool (B, T).
        gamma: discount per own token.
        lam: 0 trusts the values, 1 the rewards.

    Returns:
        Advantages and returns (advantage + value), both (B, T) and 0 elsewhere.
    """
    advantages_BT = torch.zeros_like(rewards_BT)
    advantage_B = torch.zeros_like(rewards_BT[:, 0])
    next_value_B = torch.zeros_like(advantage_B)
    for step in reversed(range(rewards_BT.shape[1])):
        mask_B, value_B = mask_BT[:, step], values_BT[:, step]
        delta_B = rewards_BT[:, step] + gamma * next_value_B - value_B
        advantage_B = torch.where(mask_B, delta_B + gamma * lam * advantage_B, advantage_B)
        next_value_B = torch.where(mask_B, value_B, next_value_B)
        advantages_BT[:, step] = torch.where(mask_B, advantage_B, 0.0)
    return advantages_BT, torch.where(mask_BT, advantages_BT + values_BT, 0.0)


EPSILON = 1e-8
"""Added to the variance, so that equal numbers become zeros."""


def whiten(numbers: Tensor, mask: Tensor) -> Tensor:
    """The numbers brought to mean 0 and (population) variance 1 over the mask; 0 outside of it.

    Args:
        numbers: any shape.
        mask: bool, same shape, at least one True; what is elsewhere is not read.
    """
    variance, mean = torch.var_mean(numbers[mask], correction=0)
    return torch.where(mask, (numbers - mean) * torch.rsqrt(variance + EPSILON), 0.0)


def policy_loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, clip: float, normaliser: float) -> Loss:
    """Minus the sum of the clipped surrogate / normaliser, see `clipped_surrogate`.

    Args:
        logprobs: (N,), of own tokens under the policy now.
        old_logprobs: (N,), of the same tokens as sampled.
        advantages: (N,).
        clip: above 0.
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss; sums `policy_loss` and those of the surrogate.
    """
    surrogate = clipped_surrogate(logprobs, old_logprobs, advantages, low=clip, high=clip)
    loss = -surrogate.gains.sum() / normaliser
    return Loss(loss, {"policy_loss": loss.detach(), **surrogate.sums})


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, *, clip: float, normaliser: float) -> Loss:
    """Half the squared error, the worse of the value and the value kept within `clip` of the old one.

    Args:
        values: (N,), of the states before own tokens, now.
        old_values: (N,), before the update.
        returns: (N,).
        clip: above 0; infinity turns the clipping off.
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss; sums `value_loss`, `value_clipped` (tokens whose gradient the clipping ended).
    """
    plain = (values - returns).square()
    kept = old_values + (values - old_values).clamp(-clip, clip)
    clipped = (kept - returns).square()
    loss = 0.5 * torch.maximum(plain, clipped).sum() / normaliser
    sums = {"value_loss": loss.detach(), "value_clipped": (clipped > plain).sum().to(loss.dtype)}
    return Loss(loss, sums)
