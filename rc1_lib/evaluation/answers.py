"""Checks of the held-out prompts, and a policy's answers to them: one episode per prompt and mode."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.training import HELD_OUT_SEED
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
    """Check that no prompt shares its `id` or `source_id` with `trained`, the rows that SFT or PPO may have drawn.

    Raises:
        EvaluationError: when one does; names the first.
    """
    seen_ids, seen_sources = set(), set()
    for row in trained:
        seen_ids.add(row["id"])
        seen_sources.add(row["source_id"])
    shared = [row["id"] for row in prompts if row["id"] in seen_ids or row["source_id"] in seen_sources]
    if shared:
        raise EvaluationError(
            f"{len(shared)} prompts of the evaluation were used in training or ask the same source question as a "
            f"training row, for example '{shared[0]}'; evaluate on rows of other source questions"
        )


def prompts_sha256(prompts: Iterable[Row]) -> str:
    """Return the SHA-256 of the rows ordered by id, so that the order of evaluation does not matter."""
    return sha256_json(sorted((dict(row) for row in prompts), key=lambda row: str(row["id"])))


def sampling_of(config: RunConfig) -> dict[str, Any]:
    """Return the settings by which held-out prompts are sampled, as an evaluation's report names them."""
    rollout = config.training.rollout
    return {
        "temperature": rollout.temperature,
        "turn_tokens": config.rollout_len,
        "thought_tokens": rollout.thought_tokens,
        "sampler": rollout.sampler,
        "limits": config.training.limits.model_dump(),
        "describe_tools": config.training.describe_tools,
        "enable_thinking": config.training.enable_thinking,
    }


def answers_of(temperature: float, play: Callable[[float], Sequence[Played]], done: int, total: int) -> Answers:
    """Answer the prompts in each mode; progress is reported from `done` of `total` plays on.

    Args:
        temperature: that of the sampled mode.
        play: plays all prompts once, at a temperature.
    """
    found: dict[Mode, Sequence[Played]] = {}
    for mode in MODES:
        report_progress(STAGE, done + len(found), total)
        found[mode] = play(temperature if mode == "sampled" else 0.0)
    report_progress(STAGE, done + len(found), total)
    return found


def answers_sha256(answers: Answers) -> str:
    """Return the SHA-256 of all episodes as JSON lines."""
    digest = hashlib.sha256()
    for mode, played in answers.items():
        for episode in played:
            digest.update(orjson.dumps({"mode": mode, "played": asdict(episode)}, option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def episodes_of(prepared: Prepared, player: PolicyEngine, temperature: float) -> list[Played]:
    """Play the held-out prompts; every policy gets the same random numbers."""
    return played_by(player, prepared.selection.held_out, temperature, HELD_OUT_SEED)


def played_by(player: Plays, rows: Sequence[MeasuredRow], temperature: float, seed: int) -> list[Played]:
    """Play one episode on each row; `seed` and the row's id seed the sampling, and temperature 0 is greedy."""
    keys = [str(row["id"]) for row in rows]
    played = player.play(rows, keys, temperature=temperature, seed=seed, iteration=0)
    return [Played(episode.row_id, episode.outcome, episode.messages) for episode in played]
