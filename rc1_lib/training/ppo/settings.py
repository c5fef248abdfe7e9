"""The settings of PPO; every number is the configuration's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PPOSettings:
    """What one update does; the KL coefficient is apart, since a controller may move it.

    Attributes:
        clip: how far the ratio may go from 1 before its gradient ends, above 0.
        value_clip: how far a value may go from the one before the update; infinity turns the clipping off.
        gamma: discount per token of the policy, in (0, 1]; tokens of observations do not discount.
        lam: lambda of the generalised advantage estimation, in [0, 1].
        value_coef: weight of the value loss beside the policy loss, at least 0.
        entropy_coef: weight of the entropy bonus, at least 0; at 0 the entropy is measured only.
        epochs: passes over the batch, at least 1.
        minibatches: optimizer steps of an epoch, at least 1.
        micro_tokens: padded tokens of one forward pass, at least 1; a matter of memory and speed, never of results.
        max_grad_norm: the norm gradients are clipped to, above 0.
        whiten: whether advantages are brought to mean 0 and variance 1 over the policy's tokens.
        kl_stop: mean approximate KL per token between the policy before the update and now at which the update ends;
            infinity never stops.
        value_warmup: first iterations in which only the value head learns, at least 0.
        value_epochs: passes of the value head alone over the batch, behind the update, at least 0.
        temperature: the temperature tokens were sampled at, above 0; all log-probabilities are taken under it.
    """

    clip: float
    value_clip: float
    gamma: float
    lam: float
    value_coef: float
    entropy_coef: float
    epochs: int
    minibatches: int
    micro_tokens: int
    max_grad_norm: float
    whiten: bool
    kl_stop: float
    value_warmup: int
    value_epochs: int
    temperature: float

    def __post_init__(self) -> None:
        """Refuses settings under which nothing can be learned."""
        for name in ("clip", "value_clip", "gamma", "max_grad_norm", "kl_stop", "temperature"):
            _expect(name, getattr(self, name), getattr(self, name) > 0, "above 0")
        for name in ("lam", "value_coef", "entropy_coef", "value_warmup", "value_epochs"):
            _expect(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")
        for name in ("epochs", "minibatches", "micro_tokens"):
            _expect(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("gamma", "lam"):
            _expect(name, getattr(self, name), getattr(self, name) <= 1, "at most 1")


def _expect(name: str, value: float, fits: bool, wanted: str) -> None:
    """Raises a sentence about a setting that does not fit; NaN fits nothing."""
    if not fits:
        raise ValueError(f"PPO setting '{name}' is {value}, expected {wanted}")
