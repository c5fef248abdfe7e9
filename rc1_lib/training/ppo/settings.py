"""The settings of PPO; every number is the configuration's."""

from __future__ import annotations

from dataclasses import dataclass

from rc1_lib.config.updates import PPO


@dataclass(frozen=True, slots=True)
class PPOSettings:
    """What one update does; the KL coefficient is apart, since a controller may move it.

    Attributes:
        ppo: the section of the configuration.
        clip: how far the ratio may go from 1 before its gradient ends, above 0.
        temperature: the temperature tokens were sampled at, above 0; all log-probabilities are taken under it.
    """

    ppo: PPO
    clip: float
    temperature: float

    def __post_init__(self) -> None:
        """Refuses settings under which nothing can be learned; NaN is one."""
        for name in ("clip", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"PPO setting '{name}' is {getattr(self, name)}, expected above 0")
