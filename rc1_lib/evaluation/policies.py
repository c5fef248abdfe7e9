"""Asking the held-out prompts: the policy that PPO started from, and what it became, by the same code that trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.episodes import MODES, EpisodeRecord, Mode, episode_frame, records_of
from rc1_lib.evaluation.evaluate import BASE, TRAINED, Evaluation, evaluate
from rc1_lib.evaluation.examples import examples_markdown
from rc1_lib.evaluation.gate import ppo_eval_gate
from rc1_lib.evaluation.prompts import check_held_out, prompts_sha256
from rc1_lib.evaluation.report import Provenance, write_evaluation
from rc1_lib.gate_report import GateReport
from rc1_lib.progress import tell
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.load import load_checkpoint
from rc1_lib.training.checkpoint.names import folder_name, resolve
from rc1_lib.training.player import Player
from rc1_lib.training.ppo_run import Prepared, check_read
from rc1_lib.training.registry import make_engine
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.run_paths import paths_of
from rc1_lib.training.setups import EpisodeSetup

STAGE = "evaluation"
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class _Answers:
    """The episodes of one policy, one for each prompt and mode."""

    sampled: list[Trajectory]
    greedy: list[Trajectory]

    def of(self, mode: Mode) -> list[Trajectory]:
        return self.sampled if mode == "sampled" else self.greedy


def evaluate_run(prepared: Prepared, finished: Mapping[int, str]) -> GateReport:
    """Let the finished runs of `seeds` answer the held-out prompts, compare them with the start, judge, and write.

    Both policies draw by the same random numbers, prompt by prompt, so that what differs is the policy.

    Args:
        prepared: what the runs stand on.
        finished: seed -> fingerprint of its checkpoint of the last step, which is judged; their prompts are pooled.

    Raises:
        CheckpointError: when a checkpoint is missing, damaged or another one.
        EvaluationError: when a prompt was trained on.
    """
    run, selection, seeds = prepared.run, prepared.selection, tuple(finished)
    check_held_out(selection.held_out, selection.train)
    plays = 2 * (1 + len(seeds))
    player = _player(prepared, seeds[0])
    start = _answers(prepared, player, 0, plays)
    records: list[EpisodeRecord] = []
    checkpoints = {BASE: prepared.reference.sha256}
    dialogues: dict[tuple[str, str], Sequence[Message]] = {}
    for number, seed in enumerate(seeds, start=1):
        path = resolve(run.config.steps, run.workspace.path(paths_of(run, seed).checkpoints))
        player.load_adapter(load_checkpoint(path, finished[seed]).tensors["adapter"])
        checkpoints[f"{TRAINED} seed {seed}"] = finished[seed]
        trained = _answers(prepared, player, 2 * number, plays)
        for policy, answers in ((BASE, start), (TRAINED, trained)):
            for mode in MODES:
                records += records_of(answers.of(mode), selection.held_out, policy=policy, mode=mode, seed=seed)
            if seed == min(seeds):
                dialogues |= {(policy, one.row_id): one.messages for one in answers.sampled}
    return _written(prepared, records, checkpoints, dialogues, seeds)


def finished_checkpoint(run: Run, seed: int) -> str:
    """The checkpoint of a run's last step, relative to the workspace."""
    return f"{paths_of(run, seed).checkpoints}/{folder_name(run.config.steps)}"


def _player(prepared: Prepared, seed: int) -> Player:
    """The engine that the configuration names, set up as training sets it up."""
    name = prepared.run.config.training.engine
    engine = make_engine(name, EpisodeSetup)  # training has told where it is another name
    engine.setup(prepared.setup(seed))
    if not isinstance(engine, Player):
        raise ConfigError(
            f"training.engine: found '{name}', but this engine plays no episodes, so its policy cannot be evaluated; "
            f"give it what rc1_lib.training.player.Player names, or take another engine"
        )
    check_read(prepared)
    return engine


def _answers(prepared: Prepared, player: Player, done: int, plays: int) -> _Answers:
    """A fresh adapter changes nothing, so that before one is loaded the start itself answers."""
    rows = prepared.selection.held_out
    found: list[list[Trajectory]] = []
    for temperature in (player.temperature, 0.0):
        tell(STAGE, done + len(found), plays)
        found.append(
            player.playground.play(
                player.causal,
                rows,
                [str(row["id"]) for row in rows],
                temperature=temperature,
                seed=prepared.run.config.training.held_out.seed,
                iteration=0,
            )
        )
    tell(STAGE, done + len(found), plays)
    return _Answers(*found)


def _written(
    prepared: Prepared,
    records: Sequence[EpisodeRecord],
    checkpoints: Mapping[str, str],
    dialogues: Mapping[tuple[str, str], Sequence[Message]],
    seeds: Sequence[int],
) -> GateReport:
    run, thresholds = prepared.run, prepared.run.config.gates.evaluation
    seed = run.config.training.held_out.seed
    frame = episode_frame(records)

    def compared(episodes: pl.DataFrame) -> Evaluation:
        return evaluate(episodes, confidence=thresholds.confidence, resamples=thresholds.resamples, seed=seed)

    evaluation = compared(frame)
    several = {one: compared(frame.filter(pl.col("seed") == one)) for one in seeds} if len(seeds) > 1 else {}
    curves = run.workspace.path(paths_of(run, seeds[0]).metrics)
    return write_evaluation(
        run,
        evaluation,
        ppo_eval_gate(evaluation, thresholds, several),
        frame=frame,
        provenance=Provenance(
            checkpoints=checkpoints,
            base_sha256=prepared.reference.sha256,
            prompts_sha256=prompts_sha256(prepared.selection.held_out),
            sampling={"temperature": run.config.training.rollout.temperature, "turn_tokens": run.config.rollout_len},
            seed=seed,
        ),
        examples=examples_markdown(frame, dialogues, before=BASE, after=TRAINED, per_kind=_EXAMPLES),
        curves=curves if curves.is_file() else None,
    )
