"""The sections of `training` on looking at policies: held-out prompts, learnability, controls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rc1_lib.config.values import Positive, Section, Seed


class OnTheWay(Section):
    """The checkpoints between start and end that the evaluation looks at: judged score beside success."""

    checkpoints: Annotated[int, Field(ge=0)]
    """How many, evenly spread over the ends of segments; 0: none."""
    prompts: Annotated[int, Field(ge=0)]
    """How many held-out prompts each of them is asked."""


class HeldOut(Section):
    """The prompts that the evaluation is asked, and training never sees."""

    share: Annotated[float, Field(gt=0, lt=1)]
    """Share of source questions kept back."""
    prompts: Positive
    """How many of them are asked, drawn by `priority_sampling.by_difficulty` as far as there are enough."""
    judged: Annotated[int, Field(ge=0)]
    """Prompts whose sampled episodes are judged too: the score is shown beside success. 0: nobody is asked."""
    between: OnTheWay
    seed: Seed
    """Of the draw of prompts, and of the episodes that judge them."""


class LearnabilitySettings(Section):
    """What the start is tried on before a training: `rc1 learnability`."""

    at_start: bool
    """Whether a training that begins anew looks first, and is refused where nothing can be learned."""
    prompts: Positive
    """Rows to learn from that are played, of each task and bucket in its share."""
    takes: Annotated[int, Field(ge=2)]
    """Episodes of each."""


class ControlSettings(Section):
    """The short training on a reward without information: `rc1 train --control`."""

    steps: Positive
    """Steps that a control is trained for."""
