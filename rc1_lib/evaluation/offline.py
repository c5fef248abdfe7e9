"""Evaluate a checkpoint's policy again on the held-out prompts, with another program, and compare with the record.

The gate `ppo_eval` judges what PyTorch played when training ended. An exported policy runs elsewhere: here it answers
the same prompts, and the results are compared with the record, prompt by prompt. The report is a separate one and has
no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.answers import played_by, prompts_sha256, sampling_of
from rc1_lib.evaluation.chance import Chance, chance_of
from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.evaluation.episodes import IDENTITY, MODES, EpisodeRecord, episode_frame, read_episodes, records_of
from rc1_lib.evaluation.evaluate import TRAINED, evaluate
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import NOT_OURS
from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.chat_format import ChatFormat, format_of
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.export.gguf_export import MANIFEST
from rc1_lib.training.export.gguf_file import context_of_file
from rc1_lib.training.export.llama_cpp import LlamaCpp, LlamaPlayer
from rc1_lib.training.export.trained_policy import engine_of, start_of
from rc1_lib.training.models import model_section
from rc1_lib.training.resource_errors import WHILE_PLAYING, naming_breakdowns
from rc1_lib.training.rollout.roll_out import Playground, Plays
from rc1_lib.training.rows import Selection, select_rows, some_of
from rc1_lib.workspace.artifacts import atomic_write, now, read_json, sha256_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

STAGE = "evaluate"
RECORDED = "recorded"
"""The name of the recorded evaluation's policy in the report."""
_AGAIN = "run `rc1 train`, which ends with one"


@dataclass(frozen=True, slots=True)
class Record:
    """The recorded evaluation with which the latest training ended.

    Attributes:
        path: the report's path, relative to the workspace.
    """

    path: str
    body: Mapping[str, Any]
    episodes: pl.DataFrame

    def check_sampling(self, run: Run) -> None:
        """Reject other settings of sampling than the recorded ones: they would be compared as well.

        Raises:
            RC1Error: names the first setting that differs.
        """
        then = self.body["sampling"]
        for name, value in sampling_of(run.config).items():
            if then.get(name, value) != value:
                raise RC1Error(
                    f"{self.path}: sampled with {name} {then.get(name)}, but these settings have {value}; pass the "
                    "same flags as for its training"
                )

    def seed_of(self, checkpoint: str, file: str) -> int:
        """Return the training seed of the checkpoint with the fingerprint `checkpoint`; errors name `file`.

        Raises:
            RC1Error: when this evaluation does not include it.
        """
        for name, sha256 in self.body["checkpoints"].items():
            if sha256 == checkpoint and name.startswith(f"{TRAINED} seed "):
                return int(name.rpartition(" ")[2])
        raise RC1Error(
            f"{file}: {self.path} did not evaluate this checkpoint (SHA-256 {checkpoint[:12]}), so there is "
            f"nothing to compare it with; use the checkpoint with which the latest training ended"
        )

    def named(self, run: Run) -> dict[str, str]:
        """Return path and SHA-256 of the report, as another report names it."""
        return {"path": self.path, "sha256": sha256_file(run.workspace.path(self.path))}


@dataclass(frozen=True, slots=True)
class OfflinePolicy:
    """A policy to evaluate, with the program that plays it.

    Attributes:
        engine: the program; also the policy's name in the report.
        file: path of the checkpoint or exported file.
        sha256: SHA-256 of its bytes.
        checkpoint: fingerprint of the policy's checkpoint.
        opened: function of the initial policy that returns a context manager with a player.
    """

    engine: str
    file: Path
    sha256: str
    checkpoint: str
    opened: Callable[[str], AbstractContextManager[Plays]]


def recorded(run: Run) -> Record:
    """Read the unaltered evaluation with which the latest training ended.

    Raises:
        RC1Error: when there is none, or it or its episodes were altered.
    """
    path = EVALUATION.where(run)
    state = EVALUATION.state(run)
    if state in NOT_OURS or not run.workspace.path(path).is_file():
        fault = NOT_OURS.get(state, "does not exist")
        raise RC1Error(f"{run.workspace.path(path)}: {fault}, so nothing can be compared with it; {_AGAIN}")
    body: dict[str, Any] = read_json(run.workspace.path(path))
    episodes = run.workspace.path(body["episodes"]["path"])
    if not episodes.is_file() or sha256_file(episodes) != body["episodes"]["sha256"]:
        raise RC1Error(f"{episodes}: does not match {path}, so nothing can be compared with it; {_AGAIN}")
    return Record(path, body, read_episodes(episodes))


def asked_by(run: Run, record: Record) -> tuple[str, Selection]:
    """Return the initial policy of a recorded evaluation, for transformers, and the rows of its run.

    Raises:
        RC1Error: when that policy is missing or differs, or these settings hold out other prompts.
    """
    base = start_of(run, record.body["base_sha256"], record.path)
    selection = select_rows(run, chat_format(run, base))
    if prompts_sha256(selection.held_out) != record.body["prompts_sha256"]:
        raise RC1Error(f"{record.path}: evaluated on other held-out prompts; pass the same flags as for its training")
    return base, selection


def by_torch(run: Run, checkpoint: Path) -> OfflinePolicy:
    """Open a checkpoint to be played by the run's own engine.

    Raises:
        CheckpointError: when it is damaged.
    """
    state = load_checkpoint(checkpoint)

    @contextmanager
    def opened(base: str) -> Iterator[Plays]:
        with (
            naming_breakdowns("Nothing was written", WHILE_PLAYING),
            closing(engine_of(run, base, state)) as engine,
        ):
            yield engine

    sha256 = fingerprint(checkpoint)
    return OfflinePolicy("torch", checkpoint, sha256, sha256, opened)


def by_llama_cpp(run: Run, file: Path) -> OfflinePolicy:
    """Open a GGUF file that `rc1 ckpt export --gguf` wrote, to be played by llama.cpp on the CPU.

    Raises:
        RC1Error: when it has no manifest or does not match it.
    """
    try:
        manifest = read_json(file.parent / MANIFEST)
        name, sha256, checkpoint = manifest["file"], manifest["sha256"], manifest["checkpoint"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RC1Error(
            f"{file.parent / MANIFEST}: expected the manifest of a GGUF file; write one with `rc1 ckpt export --gguf`"
        ) from None
    if file.name != name or not file.is_file() or sha256_file(file) != sha256:
        raise RC1Error(f"{file}: changed since it was verified; write it again with `rc1 ckpt export --gguf`")

    @contextmanager
    def opened(base: str) -> Iterator[Plays]:
        context = context_of_file(file)
        llama = LlamaCpp(file, context, run.config.training.threads)
        yield LlamaPlayer(llama, Playground(run.config, chat_format(run, base)), context)

    return OfflinePolicy("gguf", file, sha256, checkpoint, opened)


def evaluate_offline(run: Run, policy: OfflinePolicy, prompts: int | None = None) -> tuple[str, dict[str, Any]]:
    """Let a policy answer the held-out prompts in both modes, and compare with its recorded evaluation.

    Args:
        run: the training's run.
        policy: the result of `by_torch` or `by_llama_cpp`.
        prompts: number of held-out prompts; None for all.

    Returns:
        The report's path, relative to the workspace, and the report.

    Raises:
        RC1Error: when there is no record, or it belongs to another policy or other prompts; nothing is played then.
    """
    record = recorded(run)
    record.check_sampling(run)
    seed = record.seed_of(policy.checkpoint, str(policy.file))
    base, selection = asked_by(run, record)
    rows = some_of(selection.held_out, prompts)
    with policy.opened(base) as player:
        played = _played(run, player, rows, policy.engine, seed)
    before = record.episodes.filter(
        (pl.col("policy") == TRAINED) & (pl.col("seed") == seed) & pl.col("row_id").is_in([row["id"] for row in rows])
    ).with_columns(policy=pl.lit(RECORDED), judged=pl.lit(None, pl.Float64))
    return _written(run, policy, record, pl.concat([before, episode_frame(played)]), len(rows), chance_of(rows))


def chat_format(run: Run, base: str) -> ChatFormat:
    """Return the chat format with which a run's training uses the tokenizer of `base`."""
    tokenizer = load_tokenizer(model_section(run.config, base))
    return format_of(tokenizer, run.config.training)


def _played(run: Run, player: Plays, rows: Sequence[MeasuredRow], engine: str, seed: int) -> list[EpisodeRecord]:
    records: list[EpisodeRecord] = []
    training = run.config.training
    for done, mode in enumerate(MODES):
        report_progress(STAGE, done, len(MODES), f"{engine}, {mode}, {len(rows)} prompts")
        temperature = training.rollout.temperature if mode == "sampled" else 0.0
        played = played_by(player, rows, temperature, HELD_OUT_SEED)
        records += records_of(played, rows, policy=engine, mode=mode, seed=seed)
    report_progress(STAGE, len(MODES), len(MODES))
    return records


def _written(
    run: Run, policy: OfflinePolicy, record: Record, frame: pl.DataFrame, prompts: int, chance: Chance
) -> tuple[str, dict[str, Any]]:
    resamples = run.config.gates.shared.resamples
    found = evaluate(
        frame, confidence=CONFIDENCE, resamples=resamples, seed=HELD_OUT_SEED,
        before=RECORDED, after=policy.engine, chance=chance,
    )  # fmt: skip
    provenance = {
        "engine": policy.engine,
        "file": {"path": run.workspace.name(policy.file), "sha256": policy.sha256},
        "checkpoint": policy.checkpoint,
        "recorded": record.named(run),
        "asked": prompts,
        "confidence": CONFIDENCE,
    }
    return write_comparison(run, f"offline_{policy.engine}", provenance, frame, found.to_dict())


def write_comparison(
    run: Run, stem: str, provenance: Mapping[str, Any], frame: pl.DataFrame, more: Mapping[str, Any],
    dialogues: bytes = b"",
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """Write a comparison that no gate reads: its episodes, dialogues if there are any, and the report after them.

    Args:
        stem: the report is `reports/<stem>_<key>.json`.
        provenance: what decides the episodes, besides the code; the key is made of it.
        frame: the episodes.
        more: the rest of the report.
        dialogues: the result of `dialogue_lines`.

    Returns:
        The report's path, relative to the workspace, and the report.
    """
    key = sha256_json({**provenance, "code": code_sha256()})[:12]
    path, episodes, spoken = (
        f"reports/{name}" for name in (f"{stem}_{key}.json", f"{stem}_{key}.episodes.jsonl", f"dialogues_{key}.jsonl")
    )
    with atomic_write(run.workspace.path(episodes)) as stream:
        stream.write(frame.sort(IDENTITY).write_ndjson().encode())
    body = {
        "time": now(),
        **provenance,
        "episodes": {"path": episodes, "sha256": sha256_file(run.workspace.path(episodes)), "rows": frame.height},
        **more,
    }
    if dialogues:
        body["dialogues"] = spoken
        with atomic_write(run.workspace.path(spoken)) as stream:
            stream.write(dialogues)
    write_json(run.workspace.path(path), body)
    return path, body
