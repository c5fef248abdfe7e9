"""The smallest effect that the evaluation's paired comparison can detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

from rc1_lib.forecast.takes import Takes

POWER = 0.8
"""The usual convention (Cohen 1988, section 2.4): an effect that exists is missed once in five evaluations."""


def smallest_effect_pp(takes: Sequence[Takes], prompts: int, *, confidence: float, power: float = POWER) -> float:
    """How many percentage points success must rise to be detected, two-sided, with this power.

    Both policies answer the same prompts, so differences between prompts cancel. What remains is the random variation
    on each prompt, estimated from the initial policy's rollouts: (z + z') sqrt(2 v / prompts). Sources: Cohen,
    "Statistical Power Analysis" (1988), section 2.3; Miller, "Adding Error Bars to Evals" (2024), section 5. Prompts
    about one source question count as independent, so the result is a little too small.

    Args:
        takes: rollouts of similar prompts.
        prompts: how many prompts are compared.
        confidence: of the interval that must exclude 0.
        power: the chance that it does.
    """
    if not prompts or not takes:
        return math.inf
    normal = NormalDist()
    reach = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(power)
    return 100 * reach * math.sqrt(2 * fmean(one.variance for one in takes) / prompts)
