"""The judge as verl's `compute_score(data_source, solution_str, ground_truth, extra_info=None)`.

verl loads the function from a file, so that file makes it: `compute_score = make_compute_score(open_run(), weights)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rc1_lib.config.thresholds import Gates
from rc1_lib.errors import RC1Error
from rc1_lib.reward.adapters.chat import dialogue_of
from rc1_lib.reward.adapters.reward import WeightedJudge, finish
from rc1_lib.run import Run
from rc1_lib.scoring.judge import Judge


class UnscoredError(RC1Error):
    """The judge gave no scores. verl takes numbers only, and any number would be a lie."""


def make_compute_score(
    judge_or_run: Judge | Run, weights: Mapping[str, Any], *, gates: Gates | None = None, prompt_key: str = "prompt"
) -> Callable[..., float]:
    """Make the function.

    Args:
        judge_or_run: who scores; a run is the usual case, see `WeightedJudge`.
        weights: as in configs/weights.json.
        gates: thresholds, where a judge is given instead of a run.
        prompt_key: where `extra_info` holds the prompt, a text or chat messages: verl hands over the completion alone,
            so the data set has to bring it. It is the one entry that is read, because others may hold the answer.

    Returns:
        The function. The judge is never shown `ground_truth`. It raises `UnscoredError` when there are no scores, and
        `RC1Error` when the judge stopped or `extra_info` lacks the prompt.

    Raises:
        ConfigError: when the weights are refused, or the judge cannot be asked.
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
                f"extra_info has no '{prompt_key}' ({data_source}): the judge has to see what was asked; put the "
                f"prompt there when the data set is written, or name its place as prompt_key"
            )
        dialogue = dialogue_of(prompt, solution_str, f"a completion of {data_source}")
        (rated,) = finish(partial(weighted.rate, [dialogue]))
        if rated.reward is None:
            raise UnscoredError(f"the judge gave no scores for a completion of {data_source}: {rated.reason}")
        return rated.reward

    return compute_score
