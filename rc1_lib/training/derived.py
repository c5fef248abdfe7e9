"""Inputs and derived files of training. Importing this does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import Artifact, Given, Input, file_input
from rc1_lib.provenance.pinned_files import reading_vouched
from rc1_lib.run import Run
from rc1_lib.training.run_paths import CHECKPOINTS, SFT
from rc1_lib.workspace.artifacts import FileState, read_json, sha256_folder
from rc1_lib.workspace.file_hashes import sha256_file

RECORD = "warm_start.json"
"""File in a warm start's folder that records its inputs and the SHA-256 of its files."""


def _settings(run: Run) -> dict[str, Any]:
    training = run.config.training
    return {
        "warm_start": training.warm_start.model_dump(mode="json"),
        "seed": run.config.seeds[0],
        "describe_tools": training.describe_tools,
        "enable_thinking": training.enable_thinking,
        "threads": training.threads,
        "precision": training.precision,
        "gradient_checkpointing": training.gradient_checkpointing,
    }


def _base(run: Run) -> str:
    from rc1_lib.training.models import base_name, fingerprint_of

    return fingerprint_of(run.config, base_name(run.config, run.workspace))


def reference_state(run: Run) -> FileState:
    """Return the state of the warm start, without checking which rows it was trained on."""
    return state_of(REFERENCE.path(run), REFERENCE.inputs(run))


def state_of(folder: Path, inputs: Mapping[str, str]) -> FileState:
    """Return the state of a warm start in `folder`, given the current `inputs`."""
    if not folder.exists():
        return FileState.MISSING
    try:
        record = read_json(folder / RECORD)
        files = dict(record["files"])
        made_from = {name: record["inputs"].get(name) for name in inputs}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return FileState.FOREIGN
    try:
        whole = {path.name for path in folder.iterdir()} == {RECORD, *files} and all(
            sha256_file(folder / name) == digest for name, digest in files.items()
        )
    except (OSError, RC1Error):
        whole = False
    if not whole:
        return FileState.ALTERED
    return FileState.FRESH if made_from == inputs else FileState.STALE


def _look_at_latest(run: Run) -> FileState:
    from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
    from rc1_lib.training.checkpoint.save_load import load_checkpoint

    latest = CHECKPOINT.path(run)
    if not latest.exists():
        return FileState.MISSING
    try:
        values = load_checkpoint(latest.resolve()).values
    except CheckpointError:
        return FileState.ALTERED
    return FileState.FRESH if values.get("code") == code_sha256("training") else FileState.STALE


@contextmanager
def vouched_base(run: Run) -> Iterator[str]:
    """Yield the base's name for transformers, compared with the ticket before and after it is read.

    Raises:
        ConfigError: if it is not found.
        TicketError: if it differs from the ticket.
    """
    from rc1_lib.training.models import base_name

    if not BASE.applies(run) and BASE.name not in (run.vouched or {}):
        yield base_name(run.config, run.workspace)
        return
    with reading_vouched(run, BASE.name, BASE.path(run), BASE.hashed):
        yield base_name(run.config, run.workspace)


BASE = Given("base", lambda run: run.config.base_model, sha256_folder, only_folders=True)
"""A base on the hub has no files here. Its commit is among the facts of every checkpoint."""
REFERENCE = Artifact(
    "reference", lambda _: SFT, _settings, "rc1_lib.training.warm_start.reference_of", "rc1 train",
    (Input("base", _base), file_input("balanced", lambda run: run.config.seed_pool)),
    look=reference_state, code="training",
)  # fmt: skip
"""Its record also names the rows of the pool it was trained on, which depend on the model's tokenizer."""
CHECKPOINT = Artifact(
    "checkpoint", lambda _: f"{CHECKPOINTS}/latest", None, "rc1_lib.training.ppo_run.advance", "rc1 train",
    look=_look_at_latest, code="training",
)  # fmt: skip
"""A checkpoint itself names what determines its bytes. `Prepared.facts` are those of the current run."""
