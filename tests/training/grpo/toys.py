"""GRPO settings for toy policies, and rollouts of a few prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rc1_lib.config.updates import GRPO
from rc1_lib.training.engines.torch_grpo import GRPOSettings
from rc1_lib.training.rollout.trajectory import Trajectory
from tests.training.ppo.toys import parted, random_episodes, update_section


def settings(*, clip: float = 0.2, temperature: float = 1.0, **changes: Any) -> GRPOSettings:
    """Plain settings with `changes` of the sections; no update ends early."""
    shared, own = parted(changes, GRPO.model_fields)
    grpo = GRPO.model_validate({"scale_rewards": "group"} | own)
    return GRPOSettings(update_section(**shared), grpo, clip, temperature)


def rollouts(groups: Sequence[int], *, seed: int = 0) -> tuple[list[Trajectory], list[float]]:
    """Episodes and scores; `groups` says how many episodes every row has."""
    episodes, scores = random_episodes(sum(groups), seed=seed)
    rows = [f"row-{row}" for row, size in enumerate(groups) for _ in range(size)]
    return [replace(one, row_id=row) for one, row in zip(episodes, rows, strict=True)], scores
