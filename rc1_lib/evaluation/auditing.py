"""Who judges the evaluation's episodes, which of them, and which checkpoints on the way are looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.answers import Played
from rc1_lib.evaluation.episodes import MODES
from rc1_lib.records import MeasuredRow, Message
from rc1_lib.run import Run
from rc1_lib.scoring.judge import check_judge
from rc1_lib.scoring.providers import LIVE
from rc1_lib.training.checkpoint.fault import CheckpointError
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.kept_checkpoints import steps_between
from rc1_lib.training.ppo_run import Prepared, resumable

Scores = Mapping[str, float | None]
"""Row id -> the judged score of its episode; None where it is unscored or was not judged."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The scores of several policies' episodes.

    Attributes:
        scores: one a policy, in the order given.
        share: of the episodes that the judge was asked about, those that are scored; None where nobody was asked.
        judge: fingerprint of all that decides a score beside the dialogue; empty where nobody was asked.
    """

    scores: Sequence[Scores]
    share: float | None
    judge: str = ""


def audited(prepared: Prepared, policies: Sequence[Sequence[Played]]) -> Audited:
    """Judge the sampled episodes of policies by the calibrated weights that the ticket vouches for, all at once.

    Nobody is asked where training pays for no judged score: there are no weights then.

    Args:
        prepared: what the run stands on; `training.held_out.judged` says how many prompts are judged.
        policies: the episodes of each.

    Raises:
        RC1Error: when there are no weights, or the judge cannot be asked, or not as often.
    """
    wanted = _some(prepared.selection.held_out, prepared.run.config.training.held_out.judged)
    if not wanted or not prepared.run.config.pays_judged_score:
        return Audited([{} for _ in policies], None)
    judge = prepared.judge or EpisodeJudge(prepared.run)
    names, dialogues = list[tuple[int, str]](), list[Sequence[Message]]()
    for number, played in enumerate(policies):
        for one in played:
            if one.row_id in wanted:
                names.append((number, one.row_id))
                dialogues.append(one.messages)
    scores: list[dict[str, float | None]] = [{} for _ in policies]
    values = judge.audit(dialogues)
    for (number, row_id), value in zip(names, values, strict=True):
        scores[number][row_id] = value
    return Audited(scores, sum(value is not None for value in values) / len(values), judge.sha256)


def check_audit(run: Run, seeds: int) -> None:
    """Refuse, before anything is trained, an evaluation that the judge could not be asked for; nothing is sent.

    Args:
        run: whose judge and held-out prompts.
        seeds: how many runs are evaluated together.

    Raises:
        ConfigError: when a live judge cannot be asked, or not as often as the evaluation may have to.
    """
    judge, held_out = run.config.judge, run.config.training.held_out
    if judge.provider not in LIVE or not held_out.judged or not run.config.pays_judged_score:
        return
    check_judge(run)
    most, needed = judge.budget.max_calls, judged_episodes(run, seeds) * judge.samples
    if most is not None and most < needed:
        raise ConfigError(
            f"judge.budget.max_calls is {most:,}, but the evaluation of {seeds} of `seeds` may have to ask {needed:,} "
            f"times (judge.samples for each judged episode, without retries); raise it, or lower "
            f"training.held_out.judged (0: nobody is asked) or training.held_out.between"
        )


def judged_episodes(run: Run, seeds: int) -> int:
    """How many episodes an evaluation of so many runs has judged, those of checkpoints on the way among them."""
    held_out = run.config.training.held_out
    on_the_way = held_out.between.checkpoints * min(held_out.between.prompts, held_out.judged)
    return min(held_out.judged, held_out.prompts) * (1 + seeds) + on_the_way * seeds


def played_episodes(run: Run, seeds: int) -> int:
    """How many episodes an evaluation of so many runs plays, in both modes, those on the way among them."""
    held_out = run.config.training.held_out
    on_the_way = held_out.between.checkpoints * min(held_out.between.prompts, held_out.prompts)
    return len(MODES) * held_out.prompts * (1 + seeds) + on_the_way * seeds


def rows_on_the_way(prepared: Prepared) -> list[MeasuredRow]:
    """The held-out rows that checkpoints between start and end are asked, in the order of the others."""
    rows = prepared.selection.held_out
    wanted = _some(rows, prepared.run.config.training.held_out.between.prompts)
    return [row for row in rows if str(row["id"]) in wanted]


def checkpoints_on_the_way(prepared: Prepared, seed: int) -> dict[int, Path]:
    """Step -> checkpoint; those that a resumed run never had are left out."""
    found: dict[int, Path] = {}
    for step in steps_between(prepared.run.config):
        try:
            found[step] = resumable(prepared, seed, str(step))
        except CheckpointError:
            continue
    return found


def _some(rows: Sequence[MeasuredRow], count: int) -> set[str]:
    """The ids of `count` of the rows, always the same ones, whatever their order."""
    ids = sorted((str(row["id"]) for row in rows), key=lambda name: hashlib.sha256(f"judged/{name}".encode()).digest())
    return set(ids[:count])
