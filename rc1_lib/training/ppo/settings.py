"""The settings of PPO: those of the configuration, and three that are the same in every run."""

from __future__ import annotations

from dataclasses import dataclass

from rc1_lib.config.updates import PPO, Update

GAMMA = 1.0
"""Discount per token: an episode is paid at its end, and a long answer shall not count less than a short one."""
VALUE_CLIP = 1e9
"""Clipping range of a value around the one before the update, too wide to act: a range that suits the returns of one
configuration would hold the values of another one back."""
VALUE_COEF = 0.5
"""Weight of the value loss: what reaches the policy of it; how fast the head learns is `training.ppo.value_lr`."""


@dataclass(frozen=True, slots=True)
class PPOSettings:
    """What one update does; the KL coefficient is apart, since a controller may move it.

    Attributes:
        update: the section of the configuration that all engines share.
        ppo: PPO's own section.
        clip: how far the ratio may go from 1 before its gradient ends, above 0.
        temperature: the temperature tokens were sampled at, above 0; all log-probabilities are taken under it.
        gamma: the discount per token of the policy, above 0 and at most 1.
        value_clip: how far a value may go from the one before the update before its gradient ends, above 0.
        value_coef: the weight of the value loss, at least 0.
    """

    update: Update
    ppo: PPO
    clip: float
    temperature: float
    gamma: float = GAMMA
    value_clip: float = VALUE_CLIP
    value_coef: float = VALUE_COEF

    def __post_init__(self) -> None:
        """Refuses settings under which nothing can be learned; NaN is one."""
        for name in ("clip", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"PPO setting '{name}' is {getattr(self, name)}, expected above 0")
