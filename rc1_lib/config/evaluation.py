"""The sections of `training` on looking at policies: held-out prompts, learnability, controls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rc1_lib.config.values import Positive, Section, Seed


class OnTheWay(Section):
    """Checkpoints between start and end that the evaluation compares too: judged score next to success."""

    checkpoints: Annotated[int, Field(ge=0)]
    """How many checkpoints, evenly spread over the ends of segments; 0: none."""
    prompts: Annotated[int, Field(ge=0)]
    """How many held-out prompts each of them answers."""


class HeldOut(Section):
    """The prompts of the evaluation, which training never sees."""

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of source questions held out."""
    prompts: Positive
    """How many of them are used, drawn by `priority_sampling.by_difficulty` as far as there are enough."""
    judged: Annotated[int, Field(ge=0)]
    """Prompts whose sampled episodes are judged too; the score is shown next to success. 0: no judge is asked."""
    between: OnTheWay
    seed: Seed
    """Seed of the draw of prompts, and of the episodes on them."""

    def judged_episodes(self, seeds: int) -> int:
        """How many episodes an evaluation of this many runs has judged, including checkpoints in between."""
        on_the_way = self.between.checkpoints * min(self.between.prompts, self.judged)
        return min(self.judged, self.prompts) * (1 + seeds) + on_the_way * seeds


class LearnabilitySettings(Section):
    """The rollouts of the initial policy before a training."""

    at_start: Annotated[int, Field(ge=0, strict=True)]
    """Prompts that a new training tries first, eight rollouts of each; it does not start if nothing can be learned
    (`gates.learnability`). 0: it starts without."""
    prompts: Positive
    """How many training rows `rc1 learnability` plays, from each task and bucket by its share, eight times each. No
    part of a ticket."""


class ControlSettings(Section):
    """A short training on a reward without information: `rc1 train --control`."""

    steps: Positive
    """Training steps of a control."""
