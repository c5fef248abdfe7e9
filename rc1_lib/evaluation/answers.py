"""The held-out prompts, and a policy's answers: one episode on each, in each mode."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import orjson

from rc1_lib.evaluation.episodes import MODES, EvaluationError, Mode, Played
from rc1_lib.records import MeasuredRow, Row
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.rollout.roll_out import Plays
from rc1_lib.workspace.artifacts import sha256_json

STAGE = "evaluation"


Answers = Mapping[Mode, Sequence[Played]]
"""A policy's episodes in each mode, one per prompt."""


def check_held_out(prompts: Iterable[Row], trained: Iterable[Row]) -> None:
    """Check that no prompt shares its `id` or its `source_id` with a row that SFT or PPO may have drawn, `trained`.

    Raises:
        EvaluationError: names the first row that is not held out.
    """
    seen_ids, seen_sources = set(), set()
    for row in trained:
        seen_ids.add(row["id"])
        seen_sources.add(row["source_id"])
    shared = [row["id"] for row in prompts if row["id"] in seen_ids or row["source_id"] in seen_sources]
    if shared:
        raise EvaluationError(
            f"{len(shared)} prompts of the evaluation were used in training, or ask the same source question as a "
            f"training row, for example '{shared[0]}'; evaluate on rows of other source questions"
        )


def prompts_sha256(prompts: Iterable[Row]) -> str:
    """SHA-256 over the rows ordered by id, so that the order of evaluation does not matter."""
    return sha256_json(sorted((dict(row) for row in prompts), key=lambda row: str(row["id"])))


def answers_of(
    prepared: Prepared,
    player: PolicyEngine,
    rows: Sequence[MeasuredRow],
    done: int,
    plays: int,
) -> Answers:
    """The held-out prompts, answered in each mode; for the progress: `done` plays of `plays` came before them.

    A fresh adapter changes nothing, so before one is loaded the initial policy answers.
    """
    found: dict[Mode, Sequence[Played]] = {}
    for mode in MODES:
        report_progress(STAGE, done + len(found), plays)
        temperature = player.temperature if mode == "sampled" else 0.0
        found[mode] = episodes_of(prepared, player, temperature, rows)
    report_progress(STAGE, done + len(found), plays)
    return found


def answers_sha256(answers: Answers) -> str:
    """SHA-256 of every episode, one a line."""
    digest = hashlib.sha256()
    for mode, played in answers.items():
        for one in played:
            digest.update(orjson.dumps({"mode": mode, "played": asdict(one)}, option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def episodes_of(
    prepared: Prepared, player: PolicyEngine, temperature: float, some: Sequence[MeasuredRow] | None = None
) -> list[Played]:
    """The player's episodes on held-out prompts; every player uses the same random numbers."""
    rows = prepared.selection.held_out if some is None else some
    return played_by(player, rows, temperature, prepared.run.config.training.held_out.seed)


def played_by(player: Plays, rows: Sequence[MeasuredRow], temperature: float, seed: int) -> list[Played]:
    """A policy's episodes on rows; `seed` and a row's id decide what is sampled, temperature 0 is greedy."""
    keys = [str(row["id"]) for row in rows]
    played = player.play(rows, keys, temperature=temperature, seed=seed, iteration=0)
    return [Played(one.row_id, one.outcome, one.messages) for one in played]
