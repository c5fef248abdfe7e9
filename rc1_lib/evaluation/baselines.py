"""Play the held-out prompts with policies that need no RL, and compare the trained policy with each of them.

A gain over the initial policy alone could be had more cheaply: by asking always, or never, or by a rule on the words
with which prompts withhold something, or by showing the base two dialogues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.episodes import Played, episode_frame, records_of
from rc1_lib.evaluation.evaluate import TRAINED
from rc1_lib.evaluation.examples import dialogue_lines
from rc1_lib.evaluation.offline import Record, asked_by, recorded, write_comparison
from rc1_lib.evaluation.paired import contrast
from rc1_lib.evaluation.plays import Plays
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.text.tokens import holding_one_of
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.export.trained_policy import untrained_engine
from rc1_lib.training.models import base_name
from rc1_lib.training.resource_errors import WHILE_PLAYING, naming_breakdowns
from rc1_lib.training.rollout.asking import Asking
from rc1_lib.training.rollout.decoder import RolloutError, context_of
from rc1_lib.training.rollout.trajectory import prompt_of
from rc1_lib.training.rows import Selection, some_of

STAGE = "baselines"
NEVER, ALWAYS, AT_WORDS, FEW_SHOT = "never asks", "asks first", "asks at words", "two examples"


def evaluate_baselines(run: Run, checkpoint: Path, prompts: int | None = None) -> tuple[str, dict[str, Any]]:
    """Let each baseline answer the held-out prompts once, and compare with the recorded evaluation of a checkpoint.

    The initial policy plays three baselines: it never asks, it asks first, or it asks first where the user says words
    by which a training row of the task withholds something, such as "a certain one". If there was a warm start, the
    base without it is shown two demonstrations of the training rows, one that asks and one that need not. All use the
    random numbers of the evaluation.

    Args:
        run: the training's run.
        checkpoint: the trained policy.
        prompts: number of held-out prompts; None for all.

    Returns:
        The report's path, relative to the workspace, and the report.

    Raises:
        RC1Error: when there is no recorded evaluation of the checkpoint, or it played other prompts.
    """
    if run.config.training.rollout.sampler != "own":
        raise ConfigError(
            f"training.rollout.sampler: found '{run.config.training.rollout.sampler}', expected 'own': a server cannot "
            "be kept from asking, and baselines are compared with what the same sampler played"
        )
    record = recorded(run)
    record.check_sampling(run)
    seed = record.seed_of(fingerprint(checkpoint), str(checkpoint))
    start, selection = asked_by(run, record)
    rows = some_of(selection.held_out, prompts)
    plays = Plays(run)
    played, not_played = _played(run, start, record.body["base_sha256"], selection, rows, seed, plays)
    dialogues = {(name, one.row_id): one.messages for name, found in played.items() for one in found}
    records = [
        one for name, found in played.items() for one in records_of(found, rows, policy=name, mode="sampled", seed=seed)
    ]
    baselines = episode_frame(records)
    frame = pl.concat([baselines, _recorded(record, rows, seed)])
    report = _written(run, record, seed, frame, dialogue_lines(baselines, dialogues), not_played, plays.resumed)
    plays.forget()
    return report


def _played(
    run: Run, start: str, policy: str, selection: Selection, rows: Sequence[MeasuredRow], seed: int, plays: Plays
) -> tuple[dict[str, list[Played]], dict[str, str]]:
    """Return each baseline's episodes, and why a baseline could not be played."""
    worded = _worded(selection.train, rows)
    decided: dict[str, Callable[[MeasuredRow], Asking]] = {
        NEVER: lambda row: Asking.NEVER,
        ALWAYS: lambda row: Asking.FIRST,
        AT_WORDS: lambda row: Asking.FIRST if row["id"] in worded else Asking.NEVER,
    }
    played, not_played = dict[str, list[Played]](), dict[str, str]()
    warm = bool(run.config.training.warm_start.steps)
    total = len(decided) + warm
    with naming_breakdowns("No report was written; the same command goes on", WHILE_PLAYING):
        with closing(untrained_engine(run, start, seed)) as player:
            for name, asking in decided.items():
                report_progress(STAGE, len(played), total, f"{name}, {len(rows)} prompts")
                played[name] = _play(plays, player, policy, rows, [asking(row) for row in rows])
        if warm:
            report_progress(STAGE, len(played), total, f"{FEW_SHOT}, {len(rows)} prompts")
            try:
                played[FEW_SHOT] = _shown_examples(run, policy, selection.train, rows, seed, plays)
            except RolloutError as error:  # a small context has no room for examples, or no row is one
                not_played[FEW_SHOT] = str(error)
    report_progress(STAGE, total, total)
    return played, not_played


def _worded(train: Sequence[MeasuredRow], rows: Sequence[MeasuredRow]) -> set[str]:
    """Return the ids of the rows whose user says words by which a training row of the same task withholds something."""
    found = set[str]()
    for task in {row["task"] for row in rows}:
        words = [slot["vague"] for row in train if row["task"] == task and (slot := row.get("slot"))]
        mine = [row for row in rows if row["task"] == task]
        said = pl.Series([_said(row) for row in mine], dtype=pl.String)
        found |= {row["id"] for row, holds in zip(mine, holding_one_of(said, words), strict=True) if holds}
    return found


def _said(row: MeasuredRow) -> str:
    return "\n".join(one["content"] or "" for one in row["messages"] if one["role"] == "user")


def _shown_examples(
    run: Run, policy: str, train: Sequence[MeasuredRow], rows: Sequence[MeasuredRow], seed: int, plays: Plays
) -> list[Played]:
    """Play the base without its warm start, from which it would know the tools: here they are described to it."""
    training = run.config.training.model_copy(update={"describe_tools": True})
    told = replace(run, config=run.config.model_copy(update={"training": training}))
    with closing(untrained_engine(told, base_name(run.config, run.workspace), seed)) as player:
        form, context = player.playground.form, context_of(player.policy.causal.config)
        shown = tuple(_examples(train, form))
        for row in rows:  # in a process of its own, this error would end the other baselines too
            prompt_of(replace(player.playground.start(row, ""), shown=shown), form, context)
        return _play(plays, player, f"base of {policy}", rows, None, shown)


def _play(
    plays: Plays, player: PolicyEngine, policy: str, rows: Sequence[MeasuredRow], asking: Sequence[Asking] | None,
    shown: Sequence[int] = (),
) -> list[Played]:  # fmt: skip
    def now() -> list[Played]:
        episodes = player.play(
            rows, [str(row["id"]) for row in rows], temperature=player.temperature, seed=HELD_OUT_SEED, iteration=0,
            asking=asking, shown=shown,
        )  # fmt: skip
        return [Played(episode.row_id, episode.outcome, episode.messages) for episode in episodes]

    return plays.get(policy, player.temperature, rows, now, asking=asking, shown=shown)


def _examples(rows: Sequence[MeasuredRow], form: ChatFormat) -> list[int]:
    """Return the tokens of two solved demonstrations, the shortest of their kind: one asks, one need not.

    Raises:
        RolloutError: if the training rows have none.
    """
    shown: list[int] = []
    for needs in (True, False):
        fitting = [
            row["messages"]
            for row in rows
            if row["solved"] and row["needs_clarification"] is needs and bool(row["asked"]) is needs
        ]
        if not fitting:
            how = "by asking" if needs else "without asking"
            raise RolloutError(
                f"no training row was solved {how}, so that the base can be shown no such dialogue; raise pool.n or "
                "pool.teacher.need_pull"
            )
        tokens: list[list[int]] = [form.dialogue_ids(messages)[0] for messages in fitting]
        shown += sorted(tokens, key=lambda ids: (len(ids), ids))[0]
    return shown


def _recorded(record: Record, rows: Sequence[MeasuredRow], seed: int) -> pl.DataFrame:
    """Return the recorded episodes of the initial and of the trained policy on these prompts."""
    wanted = pl.col("row_id").is_in([row["id"] for row in rows])
    return record.episodes.filter((pl.col("mode") == "sampled") & (pl.col("seed") == seed) & wanted).with_columns(
        judged=pl.lit(None, pl.Float64)
    )


def _written(
    run: Run,
    record: Record,
    seed: int,
    frame: pl.DataFrame,
    dialogues: bytes,
    not_played: dict[str, str],
    resumed: int,
) -> tuple[str, dict[str, Any]]:
    settings: dict[str, Any] = {
        "confidence": CONFIDENCE, "resamples": run.config.gates.shared.resamples, "seed": HELD_OUT_SEED,
    }  # fmt: skip
    names = [name for name in frame["policy"].unique(maintain_order=True) if name != TRAINED]
    parts = {"all": frame, **{str(task[0]): part for task, part in sorted(frame.group_by("task"))}}
    compared = {
        name: {
            part: contrast(episodes, before=name, after=TRAINED, **settings).to_dict()
            for part, episodes in parts.items()
        }
        for name in names
    }
    provenance = {
        "recorded": record.named(run),
        "seed": seed,
        "prompts": frame["row_id"].n_unique(),
        "confidence": CONFIDENCE,
    }
    more = {"baselines": compared, "not_played": not_played, "resumed_plays": resumed}
    return write_comparison(run, "baselines", provenance, frame, more, dialogues)
