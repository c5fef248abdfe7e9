"""What the judge and the rules make of a step's episodes, by the calibrated weights that the ticket vouches for.

Every reply is kept in a store of the training's own, so that a step that is played again, because the process was
killed behind it, gets the scores it got before; and so that the log which the preflight's gates read stays that of the
preflight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from rc1_lib.artifacts import sha256_json
from rc1_lib.environment.world import Message
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.preflight.judged_rows import dimensions
from rc1_lib.preflight.judging import scoring_settings
from rc1_lib.preflight.weights_file import named_report, read_content, read_weights
from rc1_lib.reward.adapters.reward import Rated, WeightedJudge, finish
from rc1_lib.run import Run


@dataclass(frozen=True, slots=True)
class EpisodeScores:
    """The scores of a step's episodes.

    Attributes:
        values: in [0, 1], in the order of the episodes; None where an episode is unscored.
        unstable: how many of the scored ones the judge's samples disagree on.
    """

    values: tuple[float | None, ...]
    unstable: int

    def metrics(self) -> dict[str, float]:
        """Shares of the step: `judge/scored`, and `judge/unstable` of those that are."""
        scored = sum(value is not None for value in self.values)
        return {
            "judge/scored": scored / len(self.values),
            "judge/unstable": self.unstable / scored if scored else 0.0,
        }


class EpisodeJudge:
    """Scores episodes from their dialogues alone: neither the gold answer nor the outcome is shown.

    Attributes:
        sha256: of all that decides a score beside the dialogue: weights, judge, instructions, samples, rules.
    """

    def __init__(self, run: Run) -> None:
        """Read the weights in force, and look whether the judge can be asked at all; nothing is sent.

        Raises:
            RC1Error: when the weights are missing, damaged or somebody else's, or the judge cannot be asked, or not as
                often as a seed's training may have to.
        """
        _check_budget(run)
        weights = read_weights(run, dimensions(run))
        self._models = _calibrated_on(run)
        self._least = run.config.training.ppo.minibatches
        self._unstable_weight = run.config.reward.unstable_weight
        self.sha256 = sha256_json(
            {
                "weights": weights,
                "models": self._models,
                "scoring": scoring_settings(run),
                "unstable_weight": self._unstable_weight,
            }
        )
        self._weighted = WeightedJudge(_with_own_store(run), weights)

    def score(self, dialogues: Sequence[Sequence[Message]]) -> EpisodeScores:
        """Score the dialogues of one step, all at once.

        Where the judge's samples disagree, a score counts by `reward.unstable_weight` only: for the rest it is the mean
        of the step's scores that are stable (of all, where none is).

        Raises:
            RC1Error: when the judge stopped, too few are scored, or another version of the judge answers than the one
                that the weights were calibrated on.
        """
        rated = finish(partial(self._weighted.rate, dialogues))
        strangers = sorted({model for one in rated for model in one.models} - set(self._models))
        if strangers:
            raise RC1Error(
                f"the judge answers as {', '.join(strangers)}, but the weights were calibrated on scores of "
                f"{', '.join(self._models)}: these are not on one scale. Fix judge.model to a version, or run the "
                f"preflight again, which calibrates on the judge of today"
            )
        scored = sum(one.reward is not None for one in rated)
        if scored < self._least:
            reason = next((one.reason for one in rated if one.reward is None), "")
            raise RC1Error(
                f"the judge scored {scored} of {len(rated)} episodes of this step, and an update needs at least "
                f"{self._least} (training.ppo.minibatches). The first unscored one: {reason}"
            )
        return EpisodeScores(
            _steadied(rated, self._unstable_weight),
            sum(one.unstable for one in rated if one.reward is not None),
        )


def _steadied(rated: Sequence[Rated], weight: float) -> tuple[float | None, ...]:
    """The rewards, those of unstable dialogues drawn towards the mean of the stable ones."""
    stable = [one.reward for one in rated if one.reward is not None and not one.unstable]
    known = stable or [one.reward for one in rated if one.reward is not None]
    centre = fmean(known) if known else 0.0
    return tuple(
        one.reward if one.reward is None or not one.unstable else centre + weight * (one.reward - centre)
        for one in rated
    )


def _calibrated_on(run: Run) -> tuple[str, ...]:
    """The versions of the judge whose scores the weights in force were calibrated on."""
    report, _ = named_report(run, read_content(run))
    scoring = report.get("scoring") if report is not None else None
    models = scoring.get("models") if isinstance(scoring, Mapping) else None
    if not isinstance(models, list) or not models:
        raise RC1Error(
            f"{run.workspace.path(run.config.weights)}: names no report that says which version of the judge the "
            f"weights were calibrated on; calibrate again: rc1 weight-calib"
        )
    return tuple(map(str, models))


def _check_budget(run: Run) -> None:
    """Refuse what would end in the middle of a training."""
    config, most = run.config, run.config.judge.budget.max_calls
    needed = config.steps * config.batch_size * config.judge.samples
    if most is not None and most < needed:
        raise ConfigError(
            f"judge.budget.max_calls is {most:,}, but a seed's training may have to ask {needed:,} times (steps × "
            f"batch_size × judge.samples); raise it, lower one of these, or set training.reward.judge to 0"
        )


def _with_own_store(run: Run) -> Run:
    judge = run.config.judge
    store = judge.store.model_copy(update={"path": run.config.training.reward.scores})
    config = run.config.model_copy(update={"judge": judge.model_copy(update={"store": store})})
    return replace(run, config=config)
