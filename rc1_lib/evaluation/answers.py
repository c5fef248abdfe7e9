"""Plays a policy on held-out prompts: one episode on each, in each mode."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from rc1_lib.environment.outcome import EpisodeOutcome
from rc1_lib.evaluation.episodes import MODES, Mode
from rc1_lib.records import MeasuredRow
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.play import Plays
from rc1_lib.training.ppo_run import Prepared

STAGE = "evaluation"


@dataclass(frozen=True, slots=True)
class Played:
    """An episode, as an evaluation uses it.

    Attributes:
        row_id: its row.
        outcome: its outcome.
        messages: the dialogue, including the prompt.
    """

    row_id: str
    outcome: EpisodeOutcome
    messages: tuple[Any, ...]


Answers = Mapping[Mode, Sequence[Played]]
"""A policy's episodes in each mode, one per prompt."""


Watch = Callable[[int], None]
"""Is given how many modes have been answered."""


def answers_of(
    prepared: Prepared,
    player: PolicyEngine,
    rows: Sequence[MeasuredRow],
    modes: Sequence[Mode] = MODES,
    watch: Watch = lambda answered: None,
) -> Answers:
    """The held-out prompts, answered in each mode.

    A fresh adapter changes nothing, so before one is loaded the initial policy answers.
    """
    found: dict[Mode, Sequence[Played]] = {}
    for mode in modes:
        watch(len(found))
        found[mode] = answers_in(prepared, player, mode, rows)
    watch(len(found))
    return found


def answers_sha256(answers: Answers) -> str:
    """SHA-256 of every episode, one a line."""
    digest = hashlib.sha256()
    for mode, played in answers.items():
        for one in played:
            digest.update(orjson.dumps({"mode": mode, "played": asdict(one)}, option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def answers_in(prepared: Prepared, player: PolicyEngine, mode: Mode, rows: Sequence[MeasuredRow]) -> list[Played]:
    """The player's episodes on held-out prompts in one mode."""
    return episodes_of(prepared, player, player.temperature if mode == "sampled" else 0.0, rows)


def episodes_of(
    prepared: Prepared, player: PolicyEngine, temperature: float, some: Sequence[MeasuredRow] | None = None
) -> list[Played]:
    """The player's episodes on held-out prompts; every player uses the same random numbers."""
    rows = prepared.selection.held_out if some is None else some
    return played_by(player, rows, temperature, prepared.run.config.training.held_out.seed)


def played_by(player: Plays, rows: Sequence[MeasuredRow], temperature: float, seed: int) -> list[Played]:
    """A policy's episodes on rows.

    Args:
        player: plays it.
        rows: of the pool's schema.
        temperature: 0 is greedy.
        seed: together with a row's id it decides what is sampled.
    """
    keys = [str(row["id"]) for row in rows]
    played = player.play(rows, keys, temperature=temperature, seed=seed, iteration=0)
    return [Played(one.row_id, one.outcome, one.messages) for one in played]
