"""Settings of GRPO for toys, and takes of a few prompts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rc1_lib.config.updates import GRPO
from rc1_lib.training.grpo.settings import GRPOSettings
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.ppo.toys import random_episodes


def settings(*, clip: float = 0.2, temperature: float = 1.0, most_tokens: int = 20, **changes: Any) -> GRPOSettings:
    """Plain settings but for `changes` of the section; no update ends early."""
    plain = dict(
        group_size=3,
        scale_rewards="group",
        loss_type="dapo",
        clip_high=None,
        epochs=1,
        minibatches=1,
        micro_tokens=64,
        entropy_coef=0.0,
        max_grad_norm=1.0,
        kl_stop=1.0,
        adaptive_kl=False,
        kl_gain=0.1,
        kl_bound=0.2,
    )
    section = GRPO.model_validate(plain | changes).model_copy(update={"kl_stop": math.inf})  # which no file can say
    return GRPOSettings(section, clip, temperature, most_tokens)


def takes(groups: Sequence[int], *, seed: int = 0) -> tuple[list[Trajectory], list[float]]:
    """Episodes and scores; `groups` says how many episodes every row has."""
    episodes, scores = random_episodes(sum(groups), seed=seed)
    rows = [f"row-{row}" for row, size in enumerate(groups) for _ in range(size)]
    return [replace(one, row_id=row) for one, row in zip(episodes, rows, strict=True)], scores
