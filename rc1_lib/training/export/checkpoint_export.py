"""Export a checkpoint's policy as an adapter and as a merged model, with a manifest, if both match the policy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from peft import PeftModel
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from rc1_lib.config.hub_name import name_and_commit
from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.base_model import config_of, end_ids, load_base
from rc1_lib.training.checkpoint.atomic_folder import (
    CheckpointError,
    absent_folder,
    check_absent,
    only,
    recover,
    replaced_folder,
    write_lock,
)
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.retention import check_real_run
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.device import to_device
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.export.parity import ParityReport, parity
from rc1_lib.training.export.trained_policy import engine_of, merged_model, start_of
from rc1_lib.training.models import model_section
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.rows import select_rows, some_of
from rc1_lib.training.train_config import ModelSection
from rc1_lib.workspace.artifacts import checksum_line, read_json, write_json, write_text
from rc1_lib.workspace.file_hashes import sha256_file

STAGE = "export"
MANIFEST = "export.json"
ADAPTER, MERGED = "adapter", "merged"


class ExportMismatchError(Exception):
    """The written files do not match the policy.

    Attributes:
        found: part -> its parity report.
    """

    def __init__(self, found: Mapping[str, ParityReport]) -> None:
        """Keep the report of every part."""
        super().__init__("the exported files were read again and do not match the policy; nothing is kept")
        self.found = dict(found)


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export.

    Attributes:
        folder: contains `adapter/`, `merged/` and the manifest `export.json`.
    """

    folder: Path
    found: dict[str, ParityReport]


def export_checkpoint(run: Run, checkpoint: Path, target: Path, prompts: int) -> Exported:
    """Export a checkpoint's policy for other programs, if what they load matches it.

    `adapter/` is for `PeftModel.from_pretrained`, on top of the initial policy. `merged/` is for
    `AutoModelForCausalLM.from_pretrained`, with the tokenizer. Both are read again from disk and compared with the
    engine's policy, on greedy episodes of held-out prompts, before the folder gets its final name.

    Args:
        run: the run of the checkpoint, with its engine, base and pool.
        checkpoint: its folder.
        target: a folder that does not exist yet.
        prompts: number of held-out prompts to play.

    Raises:
        RC1Error: if the target exists, or the exported model would not stop where the policy ends a turn.
        CheckpointError: if the checkpoint is damaged, belongs to a control, or to another base or pool than the run's.
        ExportMismatchError: if a part does not match the policy; nothing is kept.
    """
    check_absent(target)
    state = load_checkpoint(checkpoint)
    check_real_run(state.values, checkpoint.name)
    base = start_of(run, state.values.get("reference"), str(checkpoint))
    engine = engine_of(run, base, state)
    with closing(engine):
        greedy = _played(run, engine, state, checkpoint, prompts)
        with absent_folder(target) as folder:
            section = model_section(run.config, base)
            _write(run, engine, section, folder)
            check_end(folder / MERGED, engine.playground.form.end_id)
            found = _compared(engine, section, folder, greedy)
            if not all(one.passed for one in found.values()):
                raise ExportMismatchError(found)
            chat = engine.playground.form.template.used
            write_json(folder / MANIFEST, {**_manifest(run, state, checkpoint, base, folder, found), "chat": chat})
    return Exported(target, found)


def _played(run: Run, engine: PolicyEngine, state: CheckpointState, checkpoint: Path, prompts: int) -> list[Trajectory]:
    """Play greedy episodes with the policy on held-out prompts."""
    selection = select_rows(run, engine.playground.form)
    if selection.pool_sha256 != state.values.get("pool"):
        raise CheckpointError(
            f"{checkpoint}: trained on another version of {run.config.seed_pool}, so its held-out prompts are unknown; "
            "give the flags with which it was trained"
        )
    rows = some_of(selection.held_out, prompts)
    report_progress(STAGE, 0, len(rows), "greedy episodes")
    keys = [str(row["id"]) for row in rows]
    return engine.play(rows, keys, temperature=0.0, seed=HELD_OUT_SEED, iteration=0)


def _write(run: Run, engine: PolicyEngine, section: ModelSection, folder: Path) -> None:
    """Write adapter, merged model and tokenizer. The adapter's configuration must not name a path of this machine."""
    peft, form = engine.policy.peft, engine.playground.form
    (settings,) = peft.peft_config.values()
    named, commit = name_and_commit(section.base)
    hub = not Path(section.base).is_dir()
    before = settings.base_model_name_or_path, settings.revision
    settings.base_model_name_or_path = named if hub else run.workspace.name(Path(section.base))
    settings.revision = commit if hub else None
    try:
        peft.save_pretrained(str(folder / ADAPTER), save_embedding_layers=False)
        (folder / ADAPTER / "README.md").unlink(missing_ok=True)  # peft's empty model card
    finally:
        settings.base_model_name_or_path, settings.revision = before
    merged_model(engine.policy.causal, section, engine.precision).save_pretrained(folder / MERGED)
    form.tokenizer.save_pretrained(folder / MERGED)


def check_end(merged: Path, end_id: int) -> None:
    """Check that a server that loads this folder stops where the policy ends its turns.

    Raises:
        RC1Error: naming the tokens at which it would stop.
    """
    ends = end_ids(str(merged), config_of(merged))
    if end_id not in ends:
        found = ", ".join(map(str, sorted(ends))) or "no token"
        raise RC1Error(
            f"{merged}: generation stops at {found}, but the policy ends a turn with token {end_id}; set "
            f"eos_token_id in the base's generation_config.json or config.json to {sorted({*ends, end_id})}"
        )


def _compared(
    engine: PolicyEngine, section: ModelSection, folder: Path, greedy: list[Trajectory]
) -> dict[str, ParityReport]:
    """Load both parts of the folder as other programs do, and compare them with the policy."""
    policy, device = engine.policy, engine.device

    def ours(ids_1T: Tensor) -> Tensor:
        return policy.logits(policy.hidden(to_device(ids_1T, device)))

    def read_by(model: torch.nn.Module) -> Callable[[Tensor], Tensor]:
        model.eval()
        return lambda ids_1T: cast(Tensor, model(input_ids=to_device(ids_1T, device)).logits)

    found = {}
    over = load_base(section, device, engine.precision)
    with_adapter = PeftModel.from_pretrained(over, str(folder / ADAPTER))
    found[ADAPTER] = parity(ours, read_by(with_adapter), greedy, engine.precision)
    del over, with_adapter
    merged: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder / MERGED, dtype=engine.precision.dtype, use_safetensors=True
    )
    found[MERGED] = parity(ours, read_by(to_device(merged, device)), greedy, engine.precision)
    return found


def _manifest(
    run: Run, state: CheckpointState, checkpoint: Path, base: str, folder: Path, found: Mapping[str, ParityReport]
) -> dict[str, Any]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        "checkpoint": {
            "path": run.workspace.name(checkpoint),
            "sha256": fingerprint(checkpoint),
            "step": state.step,
            "seed": state.values["seed"],
        },
        "base": {
            "name": run.workspace.name(Path(base)) if Path(base).is_dir() else base,
            "sha256": state.values["reference"],
            "base_model": run.config.base_model,
            "quantized": run.config.finetune.method == "qlora",
        },
        "engine": run.config.training.engine,
        "profile": run.config.profile,
        "likeness": {name: one.body() for name, one in found.items()},
        "files": {path.relative_to(folder).as_posix(): sha256_file(path) for path in files},
    }


# `final_model/`: the exported policy of the latest training whose evaluation passed.

FOLDER = "final_model"
_PROMPTS = 32


def write_final_model(run: Run, checkpoint: Path) -> str:
    """Export a checkpoint to `final_model/`, in place of an earlier one, and return that name.

    Args:
        checkpoint: one whose evaluation passed.

    Raises:
        RC1Error: if a folder of this name is not such an export, or the checkpoint cannot be exported.
        ExportMismatchError: if what was written does not match the policy; an earlier export stays.
    """
    target = run.workspace.path(FOLDER)
    with write_lock(target.parent):
        recover(target.parent, only(target))
    if _exported(target) != fingerprint(checkpoint):
        fresh = target.with_name(f".{FOLDER}.new")
        shutil.rmtree(fresh, ignore_errors=True)  # left by a killed process
        export_checkpoint(run, checkpoint, fresh, _PROMPTS)
        with replaced_folder(target) as temporary:
            for part in fresh.iterdir():
                part.rename(temporary / part.name)
        fresh.rmdir()
    files = read_json(target / MANIFEST)["files"]  # a process may have been killed before it wrote the checksums
    lines = (checksum_line(sha256, f"{FOLDER}/{name}") for name, sha256 in files.items())
    write_text(run.workspace.checksum_path(FOLDER), "".join(lines))
    return FOLDER


def _exported(target: Path) -> str | None:
    """Return the fingerprint of the checkpoint that is exported there; None if nothing is, or files have changed."""
    if not target.exists():
        return None
    try:
        manifest = read_json(target / MANIFEST)
        files = {target / name: sha256 for name, sha256 in manifest["files"].items()}
        whole = all(path.is_file() and sha256_file(path) == sha256 for path, sha256 in files.items())
        return str(manifest["checkpoint"]["sha256"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        raise RC1Error(f"{target}: is not an export of RC1, so it is not replaced; move it away") from None
