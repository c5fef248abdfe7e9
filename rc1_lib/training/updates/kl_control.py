"""The coefficient of the KL term: fixed, or steered towards a target."""

from __future__ import annotations

from rc1_lib.config.updates import Update

BOUND = 0.2
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
        return AdaptiveKL(coef, target=target, gain=update.kl_gain, bound=BOUND)
    return FixedKL(coef)
