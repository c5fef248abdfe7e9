"""The judge's scores of evaluated episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.evaluation.episodes import MODES, Played
from rc1_lib.judge.budget import check_evaluation_calls
from rc1_lib.judge.judge import check_judge
from rc1_lib.judge.providers import LIVE
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.rows import some_of

Scores = Mapping[str, float | None]
"""Row id -> the judged score of its episode; None if it has no score or was not judged."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The scores of several policies' episodes.

    Attributes:
        scores: one mapping per policy, in the given order.
        share: share of the judged episodes that have a score; None if no judge was asked.
        judge: SHA-256 of everything that decides a score, except the dialogue; empty if no judge was asked.
    """

    scores: Sequence[Scores]
    share: float | None
    judge: str = ""


def audited(prepared: Prepared, policies: Sequence[Sequence[Played]]) -> Audited:
    """Score the sampled episodes of several policies with the calibrated weights of the ticket, all at once.

    If the judged score is not part of the reward, there are no weights, and no judge is asked.

    Args:
        prepared: the inputs of the run; `training.held_out.judged` is the number of prompts to judge.

    Raises:
        RC1Error: when there are no weights, or the judge cannot be asked often enough.
    """
    judged = some_of(prepared.selection.held_out, prepared.run.config.training.held_out.judged)
    judged_ids = {row["id"] for row in judged}
    if not judged_ids or not prepared.run.config.pays_judged_score:
        return Audited([{} for _ in policies], None)
    judge = prepared.judge or EpisodeJudge(prepared.run)
    names, dialogues = list[tuple[int, str]](), list[Sequence[Message]]()
    for number, played in enumerate(policies):
        for episode in played:
            if episode.row_id in judged_ids:
                names.append((number, episode.row_id))
                dialogues.append(episode.messages)
    scores: list[dict[str, float | None]] = [{} for _ in policies]
    values = judge.audit(dialogues)
    for (number, row_id), value in zip(names, values, strict=True):
        scores[number][row_id] = value
    return Audited(scores, sum(value is not None for value in values) / len(values), judge.sha256)


def check_audit(run: Run, seeds: int) -> None:
    """Check before training that the judge can be asked often enough for the evaluation; nothing is sent.

    Args:
        run: the run, for its judge and held-out prompts.
        seeds: number of runs that are evaluated together.

    Raises:
        ConfigError: when a live judge cannot be asked as often as the evaluation may need.
    """
    config = run.config
    if config.judge.provider not in LIVE or not config.training.held_out.judged or not config.pays_judged_score:
        return
    check_judge(run)
    check_evaluation_calls(config, seeds)


def played_episodes(run: Run, seeds: int) -> int:
    """Return the number of episodes that an evaluation of `seeds` runs plays."""
    return len(MODES) * run.config.training.held_out.prompts * (1 + seeds)
