"""The settings of GRPO; every number is the configuration's."""

from __future__ import annotations

from dataclasses import dataclass

from rc1_lib.config.updates import GRPO, Update


@dataclass(frozen=True, slots=True)
class GRPOSettings:
    """What one update does; the KL coefficient is apart, since a controller may move it.

    Attributes:
        update: the section of the configuration that all engines share.
        grpo: GRPO's own section.
        clip: how far the ratio may fall below 1 before its gradient ends, above 0.
        temperature: the temperature tokens were sampled at, above 0; all log-probabilities are taken under it.
        most_tokens: own tokens that an episode may have at most, which `dr_grpo` divides by.
    """

    update: Update
    grpo: GRPO
    clip: float
    temperature: float
    most_tokens: int

    @property
    def clip_high(self) -> float:
        """How far the ratio may rise above 1 before its gradient ends."""
        return self.clip if self.grpo.clip_high is None else self.grpo.clip_high
