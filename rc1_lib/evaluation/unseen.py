"""Play held-out prompts that no evaluation has asked, with the initial policy and the trained ones.

Whoever changes a setting after an evaluation, and evaluates again, chooses on its prompts, and no interval contains
that choice. These prompts had no part in it, until somebody changes a setting after looking at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.evaluation.answers import Answers, answers_of, played_by, prompts_sha256
from rc1_lib.evaluation.chance import chance_of
from rc1_lib.evaluation.derived import KIND
from rc1_lib.evaluation.episodes import MODES, Played, episode_frame, read_episodes, records_of
from rc1_lib.evaluation.evaluate import BASE, TRAINED, evaluate
from rc1_lib.evaluation.examples import dialogue_lines
from rc1_lib.evaluation.offline import asked_by, chat_format, recorded, write_comparison
from rc1_lib.evaluation.plays import Plays
from rc1_lib.evaluation.policies import finished_checkpoint
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.export.trained_policy import untrained_engine
from rc1_lib.training.resource_errors import WHILE_PLAYING, naming_breakdowns
from rc1_lib.training.rows import some_of, unseen_rows
from rc1_lib.workspace.artifacts import in_form, read_json

STEM = "unseen"
Policies = Mapping[int, tuple[Path, str]]
"""Training seed -> a checkpoint and its fingerprint."""


def recorded_policies(run: Run) -> Policies:
    """Return the checkpoints of the recorded evaluation.

    Raises:
        RC1Error: when there is no recorded evaluation, or a checkpoint is gone.
    """
    found = recorded(run).body["checkpoints"]
    mark = f"{TRAINED} seed "
    seeds = {int(name.removeprefix(mark)): sha256 for name, sha256 in found.items() if name.startswith(mark)}
    return {seed: (finished_checkpoint(run, seed, sha256), sha256) for seed, sha256 in seeds.items()}


def evaluate_unseen(run: Run, policies: Policies, prompts: int | None = None) -> tuple[str, dict[str, Any]]:
    """Let all policies of the recorded evaluation answer other prompts, in both modes, and compare them.

    No evaluation whose episodes lie in the workspace has asked these prompts.

    Args:
        run: the training's run.
        policies: the result of `recorded_policies`.
        prompts: number of prompts; None for as many as the evaluation has, or all that are left.

    Returns:
        The report's path, relative to the workspace, and the report. It has no verdict. `earlier_looks` counts the
        other policies that such a report of the workspace is about: a setting may have been changed after it.

    Raises:
        RC1Error: when there is no recorded evaluation, it was made with other settings, or no such prompt is left.
    """
    record = recorded(run)
    record.check_sampling(run)
    earlier = _earlier_looks(run, policies)
    start, _ = asked_by(run, record)
    rows = some_of(unseen_rows(run, chat_format(run, start), _asked(run)), prompts)
    plays, total = Plays(run), len(MODES) * (1 + len(policies))
    trained: dict[int, Answers] = {}
    with (
        naming_breakdowns("No report was written; the same command goes on", WHILE_PLAYING),
        closing(untrained_engine(run, start, min(policies))) as player,
    ):

        def answered(policy: str, number: int) -> Answers:
            def play(temperature: float) -> list[Played]:
                now = partial(played_by, player, rows, temperature, HELD_OUT_SEED)
                return plays.get(policy, temperature, rows, now)

            return answers_of(player.temperature, play, len(MODES) * number, total)

        before = answered(record.body["base_sha256"], 0)
        for number, (seed, (path, sha256)) in enumerate(policies.items(), start=1):
            player.load_adapter(load_checkpoint(path, sha256).tensors["adapter"])
            trained[seed] = answered(sha256, number)
    frame = episode_frame(
        [
            one
            for seed, after in trained.items()
            for policy, answers in ((BASE, before), (TRAINED, after))
            for mode in MODES
            for one in records_of(answers[mode], rows, policy=policy, mode=mode, seed=seed)
        ]
    )
    found = evaluate(
        frame, confidence=CONFIDENCE, resamples=run.config.gates.shared.resamples, seed=HELD_OUT_SEED,
        chance=chance_of(rows),
    )  # fmt: skip
    provenance = {
        "recorded": record.named(run),
        "checkpoints": {str(seed): sha256 for seed, (_, sha256) in policies.items()},
        "prompts_sha256": prompts_sha256(rows),
        "confidence": CONFIDENCE,
    }
    dialogues = {
        (policy, one.row_id): one.messages
        for policy, answers in ((BASE, before), (TRAINED, trained[min(policies)]))
        for one in answers["sampled"]
    }
    more = {"earlier_looks": earlier, "resumed_plays": plays.resumed, **found.to_dict()}
    report = write_comparison(run, STEM, provenance, frame, more, dialogue_lines(frame, dialogues))
    plays.forget()
    return report


def _asked(run: Run) -> set[str]:
    """Return the source questions of all evaluations whose episodes lie in the workspace."""
    found = run.workspace.path("reports").glob(f"{KIND}_*.episodes.jsonl")
    return {question for path in found for question in read_episodes(path)["source_id"]}


def _earlier_looks(run: Run, policies: Policies) -> int:
    looked = set[str]()
    for path in run.workspace.path("reports").glob(f"{STEM}_????????????.json"):
        with in_form(path):
            looked |= set(read_json(path)["checkpoints"].values())
    return len(looked - {sha256 for _, sha256 in policies.values()})
