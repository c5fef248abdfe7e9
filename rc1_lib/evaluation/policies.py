"""Plays the held-out prompts with the initial and the trained policy, using the same code as training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.answers import (
    Answers,
    answers_of,
    answers_sha256,
    check_held_out,
    episodes_of,
    prompts_sha256,
)
from rc1_lib.evaluation.auditing import Audited, Scores, audited, checkpoints_on_the_way, rows_on_the_way
from rc1_lib.evaluation.episodes import MODES, EpisodeRecord, Played, episode_frame, records_of
from rc1_lib.evaluation.evaluate import BASE, TRAINED, Evaluation, evaluate
from rc1_lib.evaluation.examples import examples_markdown
from rc1_lib.evaluation.gate import ppo_eval_gate
from rc1_lib.evaluation.proxy import Beside, Point, ProxyTruth, proxy_checks, side_by_side
from rc1_lib.evaluation.report import Provenance, write_evaluation
from rc1_lib.gate_report import GateReport
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, resolve, settle, steps
from rc1_lib.training.checkpoint.retention import steps_between
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import Prepared, check_read
from rc1_lib.training.registry import make_engine
from rc1_lib.training.resource_errors import WHILE_PLAYING, naming_breakdowns
from rc1_lib.training.run_paths import paths_of

_EXAMPLES = 3
_LEFT = "No training is lost; the same command continues with what is left to do"


@naming_breakdowns(_LEFT, WHILE_PLAYING)
def evaluate_run(prepared: Prepared, finished: Mapping[int, str]) -> GateReport:
    """Let the finished runs of `seeds` answer the held-out prompts, compare them with the start, and write the report.

    Both policies use the same random numbers for each prompt, so that only the policy differs.

    Args:
        prepared: the inputs of the runs.
        finished: seed -> fingerprint of its last step's checkpoint, which is evaluated; their prompts are pooled.

    Raises:
        CheckpointError: when a checkpoint is missing, damaged or a different one.
        EvaluationError: when a prompt was used in training.
        BreakdownError: when the disk or memory is full.
    """
    run, seeds = prepared.run, tuple(finished)
    check_held_out(prepared.selection.held_out, prepared.selection.train)
    plays = 2 * (1 + len(seeds))
    with player_of(prepared, seeds[0]) as player:
        held_out = prepared.selection.held_out
        start = answers_of(prepared, player, held_out, 0, plays)
        trained: dict[int, Answers] = {}
        for number, seed in enumerate(seeds, start=1):
            path = finished_checkpoint(run, seed, finished[seed])
            player.load_adapter(load_checkpoint(path, finished[seed]).tensors["adapter"])
            trained[seed] = answers_of(prepared, player, held_out, 2 * number, plays)
        course = _checkpoints_between(prepared, player, seeds)
    scores = audited(
        prepared,
        [start["sampled"], *(one["sampled"] for one in trained.values()), *(one.played for one in course)],
    )
    first = min(seeds)
    return _written(
        prepared,
        finished,
        _records(prepared, start, trained, scores.scores),
        _points(prepared, start, course, scores.scores),
        scores,
        answers_sha256(start),
        {
            (policy, one.row_id): one.messages
            for policy, answers in ((BASE, start), (TRAINED, trained[first]))
            for one in answers["sampled"]
        },
    )


@dataclass(frozen=True, slots=True)
class _OnTheWay:
    """The answers of a checkpoint between start and end."""

    seed: int
    step: int
    played: Sequence[Played]


def _checkpoints_between(prepared: Prepared, player: PolicyEngine, seeds: Sequence[int]) -> list[_OnTheWay]:
    """The checkpoints in between, each on the same few prompts."""
    found, rows = list[_OnTheWay](), rows_on_the_way(prepared)
    for seed in seeds:
        for step, path in (checkpoints_on_the_way(prepared, seed) if rows else {}).items():
            sha256 = fingerprint(path)
            player.load_adapter(load_checkpoint(path, sha256).tensors["adapter"])
            found.append(_OnTheWay(seed, step, episodes_of(prepared, player, player.temperature, rows)))
    return found


def _records(
    prepared: Prepared, start: Answers, trained: Mapping[int, Answers], scores: Sequence[Scores]
) -> list[EpisodeRecord]:
    """An episode of each policy, mode and seed on every prompt; scores are in the order start, then seeds."""
    records: list[EpisodeRecord] = []
    for (seed, after), of_after in zip(trained.items(), scores[1:], strict=False):
        for policy, answers, judged in ((BASE, start, scores[0]), (TRAINED, after, of_after)):
            for mode in MODES:
                records += records_of(
                    answers[mode], prepared.selection.held_out, policy=policy, mode=mode, seed=seed,
                    judged=judged if mode == "sampled" else None,
                )  # fmt: skip
    return records


def _points(prepared: Prepared, start: Answers, course: Sequence[_OnTheWay], scores: Sequence[Scores]) -> list[Point]:
    """The checkpoints in between against the start, on the prompts that they answered; their scores come last."""
    rows, shared = rows_on_the_way(prepared), prepared.run.config.gates.shared
    asked = {str(row["id"]) for row in rows}
    before = [one for one in start["sampled"] if one.row_id in asked]
    points = []
    for one, judged in zip(course, scores[len(scores) - len(course) :], strict=True):
        frame = episode_frame(
            [
                record
                for policy, played, found in ((BASE, before, scores[0]), (TRAINED, one.played, judged))
                for record in records_of(played, rows, policy=policy, mode="sampled", seed=one.seed, judged=found)
            ]
        )
        beside = side_by_side(
            frame, before=BASE, after=TRAINED, confidence=shared.confidence, resamples=shared.resamples,
            seed=prepared.run.config.training.held_out.seed,
        )  # fmt: skip
        points.append(Point(one.seed, one.step, beside["all"]))
    return points


def _missing(config: RunConfig, seeds: Sequence[int], course: Sequence[Point]) -> list[tuple[int, int]]:
    """Seed and step of checkpoints to evaluate that do not exist: a run may have ended before them."""
    there = {(point.seed, point.step) for point in course}
    wanted = steps_between(config) if config.training.held_out.between.prompts else []
    return [(seed, step) for seed in seeds for step in wanted if (seed, step) not in there]


def finished_checkpoint(run: Run, seed: int, sha256: str) -> Path:
    """The path of a run's final checkpoint, found by its fingerprint, since a run may end before `steps`.

    Raises:
        CheckpointError: when neither it nor a checkpoint of the last step exists.
    """
    folder = run.workspace.path(paths_of(run, seed).checkpoints)
    settle(folder)
    last = [path for path in steps(folder).values() if (path / NAME).is_file() and fingerprint(path) == sha256]
    return last[-1] if last else resolve(run.config.steps, folder)


@contextmanager
def player_of(prepared: Prepared, seed: int) -> Iterator[PolicyEngine]:
    """The configured engine, set up as for training, until the block ends.

    Raises:
        ConfigError: when it does not play episodes.
        BreakdownError: when the disk or memory is full.
    """
    name = prepared.run.config.training.engine
    engine = make_engine(name)  # training has already rejected unknown names
    with naming_breakdowns(_LEFT, WHILE_PLAYING):
        engine.setup(prepared.setup(seed))
        if not isinstance(engine, PolicyEngine):
            raise ConfigError(
                f"training.engine: found '{name}', but this engine does not play episodes, so its policy cannot be "
                f"evaluated; derive it from rc1_lib.training.engine.PolicyEngine, or use another engine"
            )
        with closing(engine):
            check_read(prepared)
            yield engine


def _written(
    prepared: Prepared,
    finished: Mapping[int, str],
    records: Sequence[EpisodeRecord],
    course: Sequence[Point],
    scores: Audited,
    start_sha256: str,
    dialogues: Mapping[tuple[str, str], Sequence[Message]],
) -> GateReport:
    run, seeds = prepared.run, tuple(finished)
    thresholds, shared = run.config.gates.evaluation, run.config.gates.shared
    seed = run.config.training.held_out.seed
    frame = episode_frame(records)
    settings: dict[str, Any] = {"confidence": shared.confidence, "resamples": shared.resamples, "seed": seed}

    def compared(episodes: pl.DataFrame) -> Evaluation:
        return evaluate(episodes, **settings)

    evaluation = compared(frame)

    def beside(episodes: pl.DataFrame) -> dict[str, Beside]:
        sampled = episodes.filter(pl.col("mode") == "sampled")
        return side_by_side(sampled, before=BASE, after=TRAINED, **settings)

    several = {one: frame.filter(pl.col("seed") == one) for one in seeds} if len(seeds) > 1 else {}
    proxy = None
    if scores.share is not None:
        by_seed = {one: beside(part) for one, part in several.items()}
        proxy = ProxyTruth(scores.share, beside(frame), by_seed, course, _missing(run.config, seeds, course))
    checks = proxy_checks(proxy, thresholds, shared.min_coverage, optimised=run.config.training.pays_judge)
    curves = run.workspace.path(paths_of(run, seeds[0]).metrics)
    return write_evaluation(
        run,
        evaluation,
        ppo_eval_gate(evaluation, thresholds, {one: compared(part) for one, part in several.items()}, checks),
        frame=frame,
        provenance=Provenance(
            checkpoints={BASE: prepared.reference.sha256, **{f"{TRAINED} seed {one}": finished[one] for one in seeds}},
            base_sha256=prepared.reference.sha256,
            prompts_sha256=prompts_sha256(prepared.selection.held_out),
            sampling={
                "temperature": run.config.training.rollout.temperature,
                "turn_tokens": run.config.rollout_len,
                "thought_tokens": run.config.training.rollout.thought_tokens,
            },
            seed=seed,
            judge=scores.judge,
            start_sha256=start_sha256,
        ),
        examples=examples_markdown(frame, dialogues, before=BASE, after=TRAINED, per_kind=_EXAMPLES),
        curves=curves if curves.is_file() else None,
        proxy=proxy,
    )
