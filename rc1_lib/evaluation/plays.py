"""Plays of held-out prompts that are kept until a report names them, so that a stop costs one of them, not all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.evaluation.answers import prompts_sha256, sampling_of
from rc1_lib.evaluation.episodes import EvaluationError, Played
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import Row
from rc1_lib.run import Run
from rc1_lib.training.device import get_device, precision_of
from rc1_lib.workspace.artifacts import atomic_write, sha256_json

PLAYS = "data/evaluation"
"""Folder of the plays of what has not ended: of `rc1 evaluate`, and in `training` of a training's evaluation."""
OF_TRAINING = f"{PLAYS}/training"


class Plays:
    """The plays of one evaluation: each is read if an earlier process of it has kept it.

    Attributes:
        resumed: number of plays that were read. The report names it, because a file can be written by anyone who
            writes into the workspace.
    """

    def __init__(self, run: Run, folder: str = PLAYS) -> None:
        """Look at nothing yet."""
        self._run, self._folder = run, folder
        self._files: list[Path] = []
        self.resumed = 0

    def get(
        self, policy: str, temperature: float, rows: Sequence[Row], play: Callable[[], list[Played]], **how: Any
    ) -> list[Played]:
        """Return a kept play of these rows, or play now and keep it.

        Args:
            policy: SHA-256 of what plays.
            how: what else decides the episodes, besides the settings of sampling and the code.

        Raises:
            EvaluationError: when a kept play is damaged or about other rows.
        """
        decisive = {
            "policy": policy,
            "temperature": temperature,
            "prompts": prompts_sha256(rows),
            "sampling": sampling_of(self._run.config),
            "computed": _computed(self._run),
            "code": code_sha256(),
            **how,
        }
        path = self._run.workspace.path(f"{self._folder}/{sha256_json(decisive)[:16]}.jsonl")
        self._files.append(path)
        if not path.exists():
            found = play()
            with atomic_write(path) as stream:
                stream.writelines(orjson.dumps(asdict(one)) + b"\n" for one in found)
            return found
        try:
            kept = [_played(orjson.loads(line)) for line in path.read_bytes().splitlines()]
        except (ValueError, TypeError, KeyError) as error:
            raise EvaluationError(f"{path}: not a play of an evaluation ({error}); remove it to play again") from None
        if [one.row_id for one in kept] != [row["id"] for row in rows]:
            raise EvaluationError(f"{path}: holds other prompts than those of the evaluation; remove it to play again")
        self.resumed += 1
        return kept

    def forget(self) -> None:
        """Remove these plays, once a report holds their episodes; those of another evaluation stay."""
        for path in self._files:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or another evaluation's end has removed it
            self._run.workspace.path(self._folder).rmdir()


def _computed(run: Run) -> dict[str, Any]:
    """Return how this machine computes a policy: the same weights in another precision are another policy."""
    device = get_device()
    return {
        "device": device.type,
        "precision": precision_of(device, run.config.training.precision).value,
        "finetune": run.config.finetune.method,
    }


def _played(body: Mapping[str, Any]) -> Played:
    outcome = body["outcome"]
    status = EpisodeStatus(outcome["status"])
    return Played(body["row_id"], EpisodeOutcome(**{**outcome, "status": status}), tuple(body["messages"]))


def forget_plays(run: Run) -> None:
    """Remove the plays of a training's evaluation, once the training's report names it."""
    shutil.rmtree(run.workspace.path(OF_TRAINING), ignore_errors=True)
