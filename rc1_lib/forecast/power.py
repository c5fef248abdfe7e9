"""The smallest effect that the evaluation's paired comparison can be expected to find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

from rc1_lib.forecast.takes import Takes


def smallest_effect_pp(takes: Sequence[Takes], prompts: int, *, confidence: float, power: float) -> float:
    """How many percentage points success has to rise to be found, two-sided, with this chance.

    Both policies answer the same prompts, so that what differs between prompts cancels; what is left is each one's own
    chance on each prompt, taken from the start's takes: (z + z') sqrt(2 v / prompts). Sources: Cohen, "Statistical
    Power Analysis" (1988), section 2.3; Miller, "Adding Error Bars to Evals" (2024), section 5. Prompts about one
    source question are counted as if they were of two, which makes it a little too small.

    Args:
        takes: of prompts like those that are compared.
        prompts: how many are compared.
        confidence: of the interval that has to leave 0 out.
        power: the chance that it does.
    """
    if not prompts or not takes:
        return math.inf
    normal = NormalDist()
    reach = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(power)
    return 100 * reach * math.sqrt(2 * fmean(one.variance for one in takes) / prompts)
