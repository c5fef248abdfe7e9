"""Several rollouts ("takes") per prompt: how often they solve it, whether rewards differ, what effect is detectable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any

from rc1_lib.forecast.estimate import Estimate, exactly, mean_of, share_of
from rc1_lib.records import Bucket, Task

ROLLOUTS = 8
"""Rollouts per prompt when training tries whether anything can be learned: as many as GRPO compares by default."""
POWER = 0.8
"""The usual convention (Cohen 1988, section 2.4): one evaluation in five misses an effect that exists."""
LEAST = 8
"""Fewest played prompts from which a variance is estimated."""
_TOLERANCE = 1e-9
"""Rewards that differ by less count as equal, since the difference is rounding."""


@dataclass(frozen=True, slots=True)
class Takes:
    """The rollouts of one prompt.

    Attributes:
        row_id: id of the prompt's row; `task` and `bucket` are the row's as well.
        needs: whether information is missing.
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
        return len(known) < 2 or max(known) - min(known) < _TOLERANCE

    @property
    def alike(self) -> bool:
        """Whether all rollouts had the same outcome, solved or not."""
        return len(set(self.solved)) == 1

    @property
    def variance(self) -> float:
        """The unbiased variance of one rollout's success on this prompt."""
        n, right = len(self.solved), sum(self.solved)
        return right * (n - right) / (n * (n - 1))


@dataclass(frozen=True, slots=True)
class Learnable:
    """The measures of a group of prompts.

    Attributes:
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
        """Return JSON-ready values."""
        found = {name: getattr(self, name) for name in ("pass_1", "pass_n", "alike", "every", "flat")}
        return {
            "prompts": self.prompts,
            **{
                name: {"value": share.value, "low": max(0.0, share.low), "high": min(1.0, share.high)}
                for name, share in found.items()
            },
        }


def learnable(group: Sequence[Takes]) -> Learnable:
    """Measure a group of prompts; each prompt counts once, and the intervals are over prompts."""
    chances = [fmean(prompt.solved) for prompt in group]
    return Learnable(
        len(group),
        mean_of(chances) if len(chances) > 1 else exactly(chances[0]),
        share_of([any(prompt.solved) for prompt in group]),
        share_of([prompt.alike for prompt in group]),
        share_of([all(prompt.solved) for prompt in group]),
        share_of([prompt.flat for prompt in group]),
    )


def groups_of(takes: Sequence[Takes]) -> dict[str, list[Takes]]:
    """Group prompts: all, then by task, by bucket, and by task and bucket."""
    found: dict[str, list[Takes]] = {"all": list(takes)}
    for key in (lambda of: of.task, lambda of: of.bucket, lambda of: f"{of.task} {of.bucket}"):
        for prompt in sorted(takes, key=key):
            found.setdefault(key(prompt), []).append(prompt)
    return found


def smallest_effect_pp(takes: Sequence[Takes], prompts: int, *, confidence: float, power: float = POWER) -> float:
    """Return the smallest rise of success, in percentage points, that an evaluation detects with this power, two-sided.

    Both policies answer the same prompts, so that differences in difficulty cancel. What remains at least is the random
    variation on each prompt, estimated from the initial policy's rollouts: (z + z') sqrt(2 v / prompts). Sources:
    Cohen, "Statistical Power Analysis" (1988), section 2.3; Miller, "Adding Error Bars to Evals" (2024), section 5. The
    result is a lower bound: an effect that differs between prompts adds to the variation, and so do several prompts
    about one source question. Where no prompt's rollouts differ, the variation is not 0 but unseen: each prompt counts
    as if two more rollouts had differed (Laplace's rule of succession).

    Args:
        takes: rollouts of similar prompts; fewer than `LEAST` say nothing, and the result is infinite.
        confidence: confidence level of the evaluation's interval, in (0, 1).
        power: chance that this interval excludes 0.
    """
    if not prompts or len(takes) < LEAST:
        return math.inf
    normal = NormalDist()
    reach = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(power)
    seen = fmean(prompt.variance for prompt in takes)
    unseen = fmean((n + 1) / (n + 2) ** 2 for n in (len(prompt.solved) for prompt in takes))
    return 100 * reach * math.sqrt(2 * (seen or unseen) / prompts)
