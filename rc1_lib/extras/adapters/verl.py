"""The judge as verl's `compute_score(data_source, solution_str, ground_truth, extra_info=None)`.

verl loads the function from a file with this line: `compute_score = make_compute_score(open_run(), weights)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rc1_lib.config.thresholds import Gates
from rc1_lib.errors import RC1Error
from rc1_lib.judge.judge import Judge
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.reward.weighted_judge import WeightedJudge, finish
from rc1_lib.run import Run


class UnscoredError(RC1Error):
    """The judge gave no scores. verl accepts only numbers, and any number would be wrong."""


def make_compute_score(
    judge_or_run: Judge | Run, weights: Mapping[str, Any], *, gates: Gates | None = None, prompt_key: str = "prompt"
) -> Callable[..., float]:
    """Create the function.

    Args:
        judge_or_run: the judge; usually a run, see `WeightedJudge`.
        weights: as in configs/weights.json.
        gates: thresholds, if a judge is given instead of a run.
        prompt_key: key of `extra_info` with the prompt, a string or chat messages. verl passes only the completion, so
            the data set has to supply the prompt. No other entry is read, because others may contain the answer.

    Returns:
        The function. The judge never sees `ground_truth`. It raises `UnscoredError` if there are no scores, and
        `RC1Error` if the judge stopped or `extra_info` lacks the prompt.

    Raises:
        ConfigError: if the weights are rejected, or the judge cannot be asked.
    """
    weighted = WeightedJudge(judge_or_run, weights, gates)

    def compute_score(
        data_source: object,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, Any] | None = None,
        **settings: object,
    ) -> float:
        prompt = (extra_info or {}).get(prompt_key)
        if prompt is None:
            raise RC1Error(
                f"extra_info has no '{prompt_key}' ({data_source}): the judge needs the prompt; include it when you "
                f"write the data set, or name its key as prompt_key"
            )
        dialogue = dialogue_of(prompt, solution_str, f"a completion of {data_source}")
        (rated,) = finish(partial(weighted.rate, [dialogue]))
        if rated.reward is None:
            raise UnscoredError(f"the judge gave no scores for a completion of {data_source}: {rated.reason}")
        return rated.reward

    return compute_score
