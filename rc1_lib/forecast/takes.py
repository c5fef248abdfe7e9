"""Statistics of several rollouts ("takes") per prompt: how often it is solved, and whether rewards differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from rc1_lib.forecast.estimate import Estimate, exactly, mean_of, share_of
from rc1_lib.records import Bucket, Task

_ALIKE = 1e-9
"""Rewards that differ by less count as equal: they differ only by rounding."""


@dataclass(frozen=True, slots=True)
class Takes:
    """The rollouts of one prompt.

    Attributes:
        row_id, task, bucket: of the prompt.
        needs: whether a piece is missing.
        solved: for each rollout, whether it solved the prompt.
        rewards: the training reward of each rollout; None if a judge with weight gave no score.
    """

    row_id: str
    task: Task
    bucket: Bucket
    needs: bool
    solved: tuple[bool, ...]
    rewards: tuple[float | None, ...]

    @property
    def flat(self) -> bool:
        """Whether all rollouts get the same reward, so that comparing them gives no signal."""
        known = [reward for reward in self.rewards if reward is not None]
        return len(known) < 2 or max(known) - min(known) < _ALIKE

    @property
    def alike(self) -> bool:
        """Whether all rollouts had the same outcome: solved, or not."""
        return len(set(self.solved)) == 1

    def passes(self, k: int) -> float:
        """pass@k, unbiased: see `pass_at`."""
        return pass_at(len(self.solved), sum(self.solved), k)

    @property
    def variance(self) -> float:
        """The unbiased variance of one rollout's success on this prompt."""
        n, right = len(self.solved), sum(self.solved)
        return right * (n - right) / (n * (n - 1))


def pass_at(n: int, right: int, k: int) -> float:
    """The chance that one of `k` rollouts is right, if `right` of `n` were: 1 - C(n - right, k) / C(n, k).

    Unbiased. Source: Chen et al., "Evaluating Large Language Models Trained on Code" (2021), section 2.1.
    """
    assert 0 <= right <= n and 1 <= k <= n, f"{right} of {n}, {k} drawn"
    return 1.0 - comb(n - right, k) / comb(n, k)


@dataclass(frozen=True, slots=True)
class Learnable:
    """A group of prompts.

    Attributes:
        prompts: how many.
        pass_1: the chance that one rollout solves a prompt.
        pass_n: the chance that at least one of a prompt's rollouts solves it.
        alike: share of prompts that all rollouts solve, or none.
        every: share of prompts that all rollouts solve.
        flat: share of prompts whose rollouts all get the same reward.
    """

    prompts: int
    pass_1: Estimate
    pass_n: Estimate
    alike: Estimate
    every: Estimate
    flat: Estimate

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        ends = {name: getattr(self, name) for name in ("pass_1", "pass_n", "alike", "every", "flat")}
        return {
            "prompts": self.prompts,
            **{name: {"value": one.value, "low": one.low, "high": min(1.0, one.high)} for name, one in ends.items()},
        }


def learnable(group: Sequence[Takes]) -> Learnable:
    """The figures of a group of prompts; each prompt counts once, and the intervals are over prompts."""
    chances = [one.passes(1) for one in group]
    return Learnable(
        len(group),
        mean_of(chances) if len(chances) > 1 else exactly(chances[0]),
        share_of([any(one.solved) for one in group]),
        share_of([one.alike for one in group]),
        share_of([all(one.solved) for one in group]),
        share_of([one.flat for one in group]),
    )


def groups_of(takes: Sequence[Takes]) -> dict[str, list[Takes]]:
    """All prompts, then those of every task, every bucket, and every task in every bucket."""
    found: dict[str, list[Takes]] = {"all": list(takes)}
    for key in (lambda one: one.task, lambda one: one.bucket, lambda one: f"{one.task} {one.bucket}"):
        for one in sorted(takes, key=key):
            found.setdefault(key(one), []).append(one)
    return found
