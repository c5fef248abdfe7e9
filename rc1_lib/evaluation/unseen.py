"""Play held-out prompts that no evaluation has asked, with the initial and the trained policy.

Whoever changes a setting after an evaluation, and evaluates again, chooses on its prompts, and no interval contains
that choice. These prompts had no part in it, as long as nobody changes a setting after looking at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.evaluation.answers import Answers, answers_of, played_by, prompts_sha256
from rc1_lib.evaluation.chance import chance_of
from rc1_lib.evaluation.episodes import IDENTITY, MODES, Played, episode_frame, records_of
from rc1_lib.evaluation.evaluate import BASE, TRAINED, evaluate
from rc1_lib.evaluation.offline import asked_by, chat_format, recorded
from rc1_lib.evaluation.plays import Plays
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.export.trained_policy import untrained_engine
from rc1_lib.training.resource_errors import WHILE_PLAYING, naming_breakdowns
from rc1_lib.training.rows import some_of, unseen_rows
from rc1_lib.workspace.artifacts import atomic_write, now, sha256_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file


def evaluate_unseen(run: Run, checkpoint: Path, prompts: int | None = None) -> tuple[str, dict[str, Any]]:
    """Let both policies answer prompts that nobody has looked at, in both modes, and compare them.

    Args:
        run: the training's run.
        checkpoint: the trained policy, which has a recorded evaluation.
        prompts: number of prompts; None for as many as the evaluation has, or all that are left.

    Returns:
        The report's path, relative to the workspace, and the report. It has no verdict.

    Raises:
        RC1Error: when there is no recorded evaluation of the checkpoint, it was made with other settings, or no such
            prompt is left.
    """
    record = recorded(run)
    record.check_sampling(run)
    sha256 = fingerprint(checkpoint)
    seed = record.seed_of(sha256, str(checkpoint))
    start, _ = asked_by(run, record)
    rows = some_of(unseen_rows(run, chat_format(run, start)), prompts)
    adapter = load_checkpoint(checkpoint, sha256).tensors["adapter"]
    plays, of_start = Plays(run), record.body["base_sha256"]
    answers: dict[str, Answers] = {}
    with (
        naming_breakdowns("No report was written; the same command goes on", WHILE_PLAYING),
        closing(untrained_engine(run, start, seed)) as player,
    ):

        def answered(policy: str) -> Answers:
            def play(temperature: float) -> list[Played]:
                return plays.get(
                    policy, temperature, rows, partial(played_by, player, rows, temperature, HELD_OUT_SEED)
                )

            return answers_of(player.temperature, play, len(MODES) * len(answers), 2 * len(MODES))

        answers[BASE] = answered(of_start)
        player.load_adapter(adapter)
        answers[TRAINED] = answered(sha256)
    frame = episode_frame(
        [
            one
            for policy, found in answers.items()
            for mode in MODES
            for one in records_of(found[mode], rows, policy=policy, mode=mode, seed=seed)
        ]
    )
    report = _written(run, record.path, sha256, frame, rows, plays.resumed)
    plays.forget()
    return report


def _written(
    run: Run, recorded_path: str, checkpoint: str, frame: pl.DataFrame, rows: Sequence[MeasuredRow], resumed: int
) -> tuple[str, dict[str, Any]]:
    found = evaluate(
        frame, confidence=CONFIDENCE, resamples=run.config.gates.shared.resamples, seed=HELD_OUT_SEED,
        chance=chance_of(rows),
    )  # fmt: skip
    provenance = {
        "checkpoint": checkpoint,
        "recorded": {"path": recorded_path, "sha256": sha256_file(run.workspace.path(recorded_path))},
        "prompts_sha256": prompts_sha256(rows),
        "confidence": CONFIDENCE,
    }
    key = sha256_json({**provenance, "code": code_sha256()})[:12]
    path, episodes = (f"reports/unseen_{key}{end}" for end in (".json", ".episodes.jsonl"))
    with atomic_write(run.workspace.path(episodes)) as stream:
        stream.write(frame.sort(IDENTITY).write_ndjson().encode())
    body = {
        "time": now(),
        **provenance,
        "episodes": {"path": episodes, "sha256": sha256_file(run.workspace.path(episodes)), "rows": frame.height},
        "resumed_plays": resumed,
        **found.to_dict(),
    }
    write_json(run.workspace.path(path), body)
    return path, body
