"""Play the held-out prompts with the initial and the trained policy, with the same code as training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.answers import (
    Answers,
    answers_of,
    answers_sha256,
    check_held_out,
    episodes_of,
    prompts_sha256,
    sampling_of,
)
from rc1_lib.evaluation.auditing import Audited, Scores, audited
from rc1_lib.evaluation.chance import chance_of
from rc1_lib.evaluation.episodes import MODES, EpisodeRecord, Played, episode_frame, records_of
from rc1_lib.evaluation.evaluate import BASE, TRAINED, Evaluation, evaluate
from rc1_lib.evaluation.examples import dialogue_lines, examples_markdown
from rc1_lib.evaluation.gate import ppo_eval_gate
from rc1_lib.evaluation.plays import OF_TRAINING, Plays
from rc1_lib.evaluation.proxy import ProxyComparison, ProxyTruth, compare_proxy, proxy_checks
from rc1_lib.evaluation.report import Provenance, write_evaluation
from rc1_lib.gate_report import GateReport
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training.api import make_engine
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, resolve, settle, steps
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import Prepared, check_read
from rc1_lib.training.resource_errors import WHILE_PLAYING, naming_breakdowns
from rc1_lib.training.run_paths import paths_of

_EXAMPLES = 3
_LEFT = "No training is lost; the same command continues with what is left to do"


@naming_breakdowns(_LEFT, WHILE_PLAYING)
def evaluate_run(prepared: Prepared, finished: Mapping[int, str]) -> GateReport:
    """Let finished runs answer the held-out prompts, compare them with the initial policy, and write the report.

    Both policies use the same random numbers for each prompt, so that only the policy differs. The plays stay until the
    training's report names this evaluation (`forget_plays`).

    Args:
        finished: seed -> fingerprint of the final checkpoint, which is evaluated; the seeds' prompts are pooled.

    Raises:
        CheckpointError: when a checkpoint is missing, damaged or a different one.
        EvaluationError: when a prompt was used in training.
        BreakdownError: when the disk or memory is full.
    """
    run, seeds = prepared.run, tuple(finished)
    check_held_out(prepared.selection.held_out, prepared.selection.train)
    plays, total = Plays(run, OF_TRAINING), len(MODES) * (1 + len(seeds))
    with player_of(prepared, seeds[0]) as player:

        def played_as(policy: str) -> Callable[[float], list[Played]]:
            """Return what plays all prompts with the policy of this SHA-256, which the player has loaded."""
            return lambda temperature: plays.get(
                policy, temperature, prepared.selection.held_out, partial(episodes_of, prepared, player, temperature)
            )

        # Without an adapter the initial policy answers, since a fresh one changes nothing.
        start = answers_of(player.temperature, played_as(prepared.reference.sha256), 0, total)
        trained: dict[int, Answers] = {}
        for number, seed in enumerate(seeds, start=1):
            path = finished_checkpoint(run, seed, finished[seed])
            player.load_adapter(load_checkpoint(path, finished[seed]).tensors["adapter"])
            trained[seed] = answers_of(player.temperature, played_as(finished[seed]), len(MODES) * number, total)
    scores = audited(prepared, [start["sampled"], *(answers["sampled"] for answers in trained.values())])
    first = min(seeds)
    return _written(
        prepared,
        finished,
        _records(prepared, start, trained, scores.scores),
        scores,
        answers_sha256(start),
        plays.resumed,
        {
            (policy, episode.row_id): episode.messages
            for policy, answers in ((BASE, start), (TRAINED, trained[first]))
            for episode in answers["sampled"]
        },
    )


def _records(
    prepared: Prepared, start: Answers, trained: Mapping[int, Answers], scores: Sequence[Scores]
) -> list[EpisodeRecord]:
    """Return one record per policy, mode, seed and prompt; `scores` has the initial policy first, then the seeds."""
    records: list[EpisodeRecord] = []
    for (seed, after), of_after in zip(trained.items(), scores[1:], strict=False):
        for policy, answers, judged in ((BASE, start, scores[0]), (TRAINED, after, of_after)):
            for mode in MODES:
                records += records_of(
                    answers[mode], prepared.selection.held_out, policy=policy, mode=mode, seed=seed,
                    judged=judged if mode == "sampled" else None,
                )  # fmt: skip
    return records


def finished_checkpoint(run: Run, seed: int, sha256: str) -> Path:
    """Return the path of a run's final checkpoint, found by its fingerprint, since a run may end before `steps`.

    Raises:
        CheckpointError: when neither it nor a checkpoint of the last step exists.
    """
    folder = run.workspace.path(paths_of(run, seed).checkpoints)
    settle(folder)
    last = [path for path in steps(folder).values() if (path / NAME).is_file() and fingerprint(path) == sha256]
    return last[-1] if last else resolve(run.config.steps, folder)


@contextmanager
def player_of(prepared: Prepared, seed: int) -> Iterator[PolicyEngine]:
    """Set up the configured engine as for training, and close it at the end of the block.

    Raises:
        ConfigError: when the engine does not play episodes.
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
    scores: Audited,
    start_sha256: str,
    resumed: int,
    dialogues: Mapping[tuple[str, str], Sequence[Message]],
) -> GateReport:
    run, seeds = prepared.run, tuple(finished)
    gates = run.config.gates
    seed = HELD_OUT_SEED
    frame = episode_frame(records)
    settings: dict[str, Any] = {"confidence": CONFIDENCE, "resamples": gates.shared.resamples, "seed": seed}

    chance = chance_of(prepared.selection.held_out)

    def compared(episodes: pl.DataFrame) -> Evaluation:
        return evaluate(episodes, **settings, chance=chance)

    evaluation = compared(frame)

    def compared_proxy(episodes: pl.DataFrame) -> dict[str, ProxyComparison]:
        sampled = episodes.filter(pl.col("mode") == "sampled")
        return compare_proxy(sampled, before=BASE, after=TRAINED, **settings)

    parts = {of: frame.filter(pl.col("seed") == of) for of in seeds} if len(seeds) > 1 else {}
    proxy = None
    if scores.share is not None:
        by_seed = {of: compared_proxy(part) for of, part in parts.items()}
        proxy = ProxyTruth(scores.share, compared_proxy(frame), by_seed)
    checks = proxy_checks(proxy, optimised=run.config.training.pays_judge)
    curves = run.workspace.path(paths_of(run, seeds[0]).metrics)
    return write_evaluation(
        run,
        evaluation,
        ppo_eval_gate(evaluation, gates.evaluation, {of: compared(part) for of, part in parts.items()}, checks),
        frame=frame,
        provenance=Provenance(
            checkpoints={BASE: prepared.reference.sha256, **{f"{TRAINED} seed {of}": finished[of] for of in seeds}},
            base_sha256=prepared.reference.sha256,
            prompts_sha256=prompts_sha256(prepared.selection.held_out),
            sampling=sampling_of(run.config),
            seed=seed,
            judge=scores.judge,
            start_sha256=start_sha256,
        ),
        examples=examples_markdown(frame, dialogues, before=BASE, after=TRAINED, per_kind=_EXAMPLES),
        dialogues=dialogue_lines(frame, dialogues),
        curves=curves if curves.is_file() else None,
        proxy=proxy,
        resumed=resumed,
    )
