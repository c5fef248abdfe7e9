"""Score a step's episodes by judge and rules, with the calibrated weights that the ticket pins.

The scores of a step, including unscored episodes, are written before anything is learned from them. If a step is played
again after a kill or a lost checkpoint, the same scores are used. The judge might answer differently, and a failed call
might succeed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rc1_lib.calibration.derived import JUDGE_BASELINE
from rc1_lib.calibration.judge_baseline import drift_verdict
from rc1_lib.calibration.judged_rows import UNSTABLE_WEIGHT, dimensions
from rc1_lib.calibration.weights_file import named_report, read_content, read_weights
from rc1_lib.check_words import check_line
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge.budget import NO_LIMIT, Spending, known_usd, whole_budget
from rc1_lib.judge.judge import check_judge, open_judge, open_store, score_unbilled
from rc1_lib.judge.maintenance import Paid, paid_in
from rc1_lib.judge.prompt import dialogue_sha256, read_spec, scoring_settings
from rc1_lib.judge.providers import LIVE
from rc1_lib.judge.results import Judged, JudgeStoppedError
from rc1_lib.judge.rubric import NAME as RUBRIC
from rc1_lib.provenance.pinned_files import check_vouched
from rc1_lib.records import Message
from rc1_lib.reward.weighted_judge import STAGE, Rated, RewardLog, finish, rated
from rc1_lib.run import Run
from rc1_lib.training.callbacks.cap import USD
from rc1_lib.workspace.artifacts import FileState, read_json, sha256_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

SCORES = "data/judge/episodes"
"""The folder of everything here, apart from the store that the gates read."""
REPLIES = f"{SCORES}/replies.sqlite"
STEPS = "steps"
ASKED = "asked"
"""Folder with one file per step that has no scores yet: who has asked about it."""
MIN_SCORED = 0.9
"""Share of a step's episodes that must have a score: with fewer, what is left would be a choice of the judge's."""


@dataclass(frozen=True, slots=True)
class EpisodeScores:
    """The scores of a step's episodes.

    Attributes:
        values: in [0, 1], in the order of the episodes; None for an unscored episode.
        unstable: number of scored episodes on which the judge's samples disagree.
        calls: calls sent for them, including those of a process that was killed or stopped.
        usd: cost of these calls; None if no price is known.
    """

    values: tuple[float | None, ...]
    unstable: int
    calls: int = field(default=0, compare=False)
    usd: float | None = field(default=0.0, compare=False)

    @property
    def scored(self) -> int:
        """Number of episodes with a score."""
        return sum(value is not None for value in self.values)

    def metrics(self) -> dict[str, float]:
        """Return `judge/score`, the mean; `judge/scored`, a share of the step; `judge/unstable`, a share of the scored.

        Also their cost: `costs/judge_calls` and, if known, `costs/judge_usd`.
        """
        known = [value for value in self.values if value is not None]
        return {
            **({"judge/score": fmean(known)} if known else {}),
            "judge/scored": self.scored / len(self.values),
            "judge/unstable": self.unstable / self.scored if self.scored else 0.0,
            "costs/judge_calls": float(self.calls),
            **({} if self.usd is None else {USD: self.usd}),
        }


class EpisodeJudge:
    """Scores episodes from their dialogues alone, without gold answer or outcome.

    Attributes:
        sha256: of the settings that decide a score besides the dialogue: weights, judge and its versions, instructions,
            samples. It does not cover the code of the rules.
    """

    def __init__(self, run: Run) -> None:
        """Read the current weights, and check that the judge can be asked. Nothing is sent.

        Raises:
            RC1Error: if the weights are missing, damaged or not from this workspace, or the judge cannot be asked.
        """
        check_judge(run)
        self._weights = read_weights(run, dimensions(run))
        self._models = _calibrated_on(run)
        self._run, self._spec = run, read_spec(run)
        self._log = RewardLog("episodes")
        self.sha256 = sha256_json(
            {
                "weights": self._weights,
                "models": self._models,
                "scoring": scoring_settings(run),
            }
        )

    @property
    def run(self) -> Run:
        """The run whose workspace holds the judge's requests and replies, wherever the episodes are played."""
        return self._run

    def score(self, dialogues: Sequence[Sequence[Message]]) -> EpisodeScores:
        """Score all dialogues of one step. A step that was scored before gets the same scores again.

        The judge's budget does not apply: the number of steps decides the calls, and `training.cap` the money.

        If the judge's samples disagree, the score counts only by `UNSTABLE_WEIGHT`. The rest of its weight goes
        to the mean of the step's stable scores, or of all if none is stable.

        Args:
            dialogues: chat messages of each episode.

        Raises:
            JudgeStoppedError: if the judge stopped.
            RC1Error: if too few episodes are scored, or the judge's version is not one that the weights were calibrated
            on.
        """
        key = sha256_json([self.sha256, [dialogue_sha256(messages) for messages in dialogues]])
        folder = self._run.workspace.path(SCORES)
        path, asked = folder / STEPS / key[:2] / f"{key}.json", folder / ASKED / f"{key}.json"
        if path.exists():
            return _read(path)
        lost = self._paid_by(asked)
        config = self._run.config.judge
        found, judged = self._rated(dialogues, Spending(NO_LIMIT, config.prices), asked)
        calls = lost.calls + judged.calls
        scores = EpisodeScores(
            _steadied(found, UNSTABLE_WEIGHT),
            sum(one.unstable for one in found if one.reward is not None),
            calls,
            known_usd(config, lost.usd + judged.usd, calls),
        )
        self._check_coverage(scores, judged)
        write_json(path, asdict(scores))
        asked.unlink(missing_ok=True)
        return scores

    def audit(self, dialogues: Sequence[Sequence[Message]]) -> tuple[float | None, ...]:
        """Score dialogues that are not used for learning. Unstable scores are not adjusted; None if unscored.

        Raises:
            ConfigError: if they may need more calls than the judge's budget has, before any call.
            JudgeStoppedError: if the judge stopped.
            RC1Error: if the judge's version is not one that the weights were calibrated on.
        """
        judge = self._run.config.judge
        needed = len({dialogue_sha256(messages) for messages in dialogues}) * judge.samples
        if judge.provider in LIVE and judge.budget.max_calls is not None and judge.budget.max_calls < needed:
            raise ConfigError(
                f"judge.budget.max_calls is {judge.budget.max_calls:,}, but the evaluation may need {needed:,} calls "
                f"(judge.samples for each episode); raise it, or lower training.held_out.judged"
            )
        found, _ = self._rated(dialogues, whole_budget(judge), None)
        return tuple(one.reward for one in found)

    def _paid_by(self, asked: Path) -> Paid:
        """Return what earlier processes paid for a step before they were killed or stopped."""
        names = _names(asked)
        return paid_in(self._run, REPLIES, names) if names else Paid()

    def _rated(
        self, dialogues: Sequence[Sequence[Message]], spending: Spending, asked: Path | None
    ) -> tuple[list[Rated], Judged]:
        judged = finish(partial(self._ask, dialogues, spending, asked))
        if judged.stopped:
            raise JudgeStoppedError(
                f"the judge stopped: {judged.stopped}. Paid replies are kept; run again to continue"
            )
        self._log.warn(judged)
        found = rated(judged, dialogues, self._weights)
        self._check_models(found)
        return found, judged

    async def _ask(self, dialogues: Sequence[Sequence[Message]], spending: Spending, asked: Path | None) -> Judged:
        config = self._run.config
        if config.judge.provider == RUBRIC:
            return score_unbilled(dialogues, config.judge, self._spec, config.gates.stability.max_variance)
        with open_store(self._run, REPLIES) as store:
            if asked is not None:
                write_json(asked, [*_names(asked), store.run_id])
            # The instructions that the fingerprint covers, even if the file has changed since.
            judging = replace(open_judge(self._run, store), spec=self._spec, spending=spending, stage=STAGE)
            return await judging.score_async(dialogues)

    def _check_models(self, found: Sequence[Rated]) -> None:
        unknown = sorted({model for one in found for model in one.models} - set(self._models))
        if unknown:
            raise RC1Error(
                f"the judge answers as {', '.join(unknown)}, but the weights were calibrated on scores of "
                f"{', '.join(self._models)}, which are not comparable. Set judge.model to a fixed version, or run the "
                f"preflight again to calibrate on the current judge"
            )

    def _check_coverage(self, scores: EpisodeScores, judged: Judged) -> None:
        least = self._run.config.training.update.minibatches
        if scores.scored >= max(MIN_SCORED * len(scores.values), least):
            return
        raise RC1Error(
            f"the judge scored {scores.scored} of {len(scores.values)} episodes of this step, expected at least "
            f"{MIN_SCORED:.0%} and {least} (training.update.minibatches); learning from so few would mislead. "
            f"Unscored: {judged.why_unscored}"
        )


def _steadied(found: Sequence[Rated], weight: float) -> tuple[float | None, ...]:
    """Move the rewards of unstable dialogues towards the mean of the stable ones."""
    stable = [one.reward for one in found if one.reward is not None and not one.unstable]
    known = stable or [one.reward for one in found if one.reward is not None]
    centre = fmean(known) if known else 0.0
    return tuple(
        one.reward if one.reward is None or not one.unstable else centre + weight * (one.reward - centre)
        for one in found
    )


def _read(path: Path) -> EpisodeScores:
    try:
        body = read_json(path)
        return EpisodeScores(tuple(body["values"]), body["unstable"], body.get("calls", 0), body.get("usd", 0.0))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RC1Error(
            f"{path}: not valid scores of a step ({error}); remove it to ask the judge again, which may change what is "
            f"learned from this step"
        ) from None


def _names(asked: Path) -> list[str]:
    """Return the names in the usage log of those who have asked about a step."""
    try:
        names = read_json(asked)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        names = error
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    raise RC1Error(
        f"{asked}: expected a list of names in the usage log, found {names!r:.80}; remove it, and the cost of the "
        f"interrupted step no longer counts towards training.cap.usd"
    )


def _calibrated_on(run: Run) -> tuple[str, ...]:
    """Return the versions of the judge on whose scores the weights were calibrated."""
    content = read_content(run)
    report, sha256 = named_report(run, content)
    scoring = report.get("scoring") if report is not None and sha256 == content["report"].get("sha256") else None
    models = scoring.get("models") if isinstance(scoring, Mapping) else None
    if not isinstance(models, list) or not models:
        raise RC1Error(
            f"{run.workspace.path(run.config.weights)}: its report is missing or altered, so the judge's version is "
            f"unknown; calibrate again with rc1 weight-calib"
        )
    return tuple(map(str, models))


# Check before each segment with a live judge that it still grades as in its baseline.

CHECKS = "checks"
"""Folder of these checks, next to the replies about episodes. Each run has its own store, which shows its cost."""


def checks_of(facts: Mapping[str, Any]) -> str:
    """Return the store of a run's checks, relative to the workspace. `facts` identify the run."""
    return f"{SCORES}/{CHECKS}/{sha256_json(facts)}.sqlite"


def check_grades(run: Run, where: str) -> str:
    """Ask a live judge again about the dialogues of its baseline, and compare with the gate `judge_drift`.

    A long training has hundreds of segments, and sometimes noise alone looks like a change. So a failure counts only if
    it is confirmed by a second round.

    Args:
        run: its judge and baseline. Without a ticket and a baseline there is nothing to compare with.
        where: the store for the replies, as named by `checks_of`.

    Returns:
        The result for the log; "" if the judge was not asked.

    Raises:
        RC1Error: if the judge grades differently, answers as another version or cannot be asked, or the baseline
            differs from the ticket.
    """
    path = JUDGE_BASELINE.path(run)
    if run.config.judge.provider not in LIVE:
        return ""
    if run.vouched is None and JUDGE_BASELINE.state(run) is FileState.MISSING:
        return ""
    check_vouched(run, JUDGE_BASELINE.name, path, sha256_file(path) if path.is_file() else None)
    gate = drift_verdict(run, where)
    if gate.failures:
        gate = drift_verdict(run, where)
    if gate.failures:
        check = gate.failures[0]
        raise RC1Error(
            f"the judge that scores episodes no longer grades as in its baseline: {check_line(check)}. {check.advice}. "
            f"The checkpoints so far are kept; the nightly shows every check"
        )
    return f"the judge grades as in its baseline ({len(gate.checks)} checks)"
