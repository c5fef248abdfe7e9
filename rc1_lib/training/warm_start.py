"""The warm start: supervised training of the base on the pool's demonstrations.

Its result is the policy that PPO starts from and the pinned reference of its KL: a folder as `from_pretrained` takes
it, with a record of what it was made from. A folder whose record names other inputs, or whose bytes are not those
recorded, is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.runtime.progress import tell
from rc1_lib.training.api import Scheduled
from rc1_lib.training.base_model import load_base, load_tokenizer
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.derived import RECORD, REFERENCE, reference_state, state_of, vouched_base
from rc1_lib.training.device import ORDER, Precision, get_device, precision_of
from rc1_lib.training.diverged import naming_step
from rc1_lib.training.labelled_rows import Collator, EncodedRow, ShuffledRows
from rc1_lib.training.models import fingerprint_of, model_section
from rc1_lib.training.recorded_base import check_recorded
from rc1_lib.training.registry import make_engine
from rc1_lib.training.resource_errors import WARMING_UP, naming_breakdowns
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.train_config import EngineSection
from rc1_lib.workspace.artifacts import FileState, sha256_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

ENGINE = "pure_pt_sft"
_NOTHING_LEFT = "Nothing of a warm start is kept before it is done"


@dataclass(frozen=True, slots=True)
class Reference:
    """The policy that PPO starts from, and its fingerprint."""

    base: str
    sha256: str


def reference_of(run: Run, rows: Sequence[MeasuredRow], form: ChatFormat) -> Reference:
    """The warm-started policy, made where it is missing or out of date; the base itself where no steps are asked for.

    Raises:
        RC1Error: when the base cannot be had, or is not the one that the ticket vouches for.
        DivergedError: when it leaves the finite numbers.
        BreakdownError: when the disk or memory is full.
    """
    config, folder = run.config, REFERENCE.path(run)
    with vouched_base(run) as base:
        check_recorded(Path(base))
        if not config.training.warm_start.steps:
            return Reference(base, fingerprint_of(config, base))
        inputs = {**REFERENCE.inputs(run), "rows": sha256_json([row["id"] for row in rows])}
        if state_of(folder, inputs) is not FileState.FRESH:
            with naming_breakdowns(_NOTHING_LEFT, WARMING_UP), atomic_folder.replaced_folder(folder) as temporary:
                _make(temporary, run, base, rows, form, inputs)
    return Reference(str(folder), fingerprint_of(config, str(folder)))


def warm_start_due(run: Run) -> bool:
    """Whether a training would begin with a warm start: one is asked for, and what it makes is not there yet."""
    return bool(run.config.training.warm_start.steps) and reference_state(run) is not FileState.FRESH


def learned_batch(rows: Sequence[MeasuredRow], form: ChatFormat) -> dict[str, Any]:
    """The rows as one batch of a warm start: `input_ids`, `attention_mask` and `labels`, int64 [B, T]."""
    encoded = _Encoded(rows, form)
    return _OwnTokensOnly(form.pad_id)([encoded[place] for place in range(len(rows))])


def _make(
    folder: Path, run: Run, base: str, rows: Sequence[MeasuredRow], form: ChatFormat, inputs: dict[str, str]
) -> None:
    settings, seed = run.config.training.warm_start, run.config.seeds[0]
    torch.manual_seed(seed)
    torch.set_num_threads(run.config.training.threads)
    engine = make_engine(ENGINE, SupervisedSetup)
    engine.setup(_setup(run, base))
    assert isinstance(engine, Scheduled), f"{ENGINE} shows its optimizer"
    section = model_section(run.config, base)
    batches = ShuffledRows(_Encoded(rows, form), _OwnTokensOnly(form.pad_id), settings.batch_size, seed)
    curve = []
    for step in range(settings.steps):
        for group in engine.optimizer.param_groups:
            group["lr"] = settings.lr * (1.0 - step / settings.steps)
        with naming_step(step + 1):
            metrics = engine.train_step(batches.next())
        curve.append(round(metrics["loss"], 5))
        tell("warm start", step + 1, settings.steps, f"loss {metrics['loss']:.3f}")
    model = load_base(section.model_copy(update={"quantization": None}), torch.device("cpu"), Precision.FP32)
    model.load_state_dict(engine.state_dict()["model"], strict=False)
    model.save_pretrained(folder)
    load_tokenizer(section).save_pretrained(folder)
    files = {path.name: sha256_file(path) for path in sorted(folder.iterdir())}
    write_json(folder / RECORD, {"inputs": inputs, "files": files, "loss": curve})


def _setup(run: Run, base: str) -> SupervisedSetup:
    """What the engine is set up by: all weights are trained, nothing is quantised."""
    settings, section = run.config.training.warm_start, model_section(run.config, base)
    checkpointing = run.config.training.gradient_checkpointing
    whole = {
        "gradient_checkpointing": checkpointing,
        "quantization": None,
        "lora": section.lora.model_copy(update={"enable": False}),
    }
    return SupervisedSetup(
        model=section.model_copy(update=whole),
        engine=EngineSection(name=ENGINE, lr=settings.lr),
        micro_batch=settings.micro_batch or settings.batch_size,
        seed=run.config.seeds[0],
        devices=ORDER,
        precision=precision_of(get_device(), run.config.training.precision),
    )


class _Encoded(Sequence[EncodedRow]):
    """Demonstrations as tokens, made when they are asked for; which are the assistant's travels in `meta`."""

    def __init__(self, rows: Sequence[MeasuredRow], form: ChatFormat) -> None:
        self._rows, self._form = rows, form

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        ids, own = self._form.dialogue_ids(self._rows[index]["messages"])
        return EncodedRow(ids=tuple(ids), prompt_tokens=own.index(True), meta={"own": own})


class _OwnTokensOnly(Collator):
    """Batches in which only the assistant's tokens are labels: what the tools said is not to be learned."""

    def __init__(self, pad_id: int) -> None:
        super().__init__(pad_id, "right")

    def __call__(self, rows: Sequence[EncodedRow]) -> dict[str, Any]:
        batch = super().__call__(rows)
        labels: Tensor = batch["labels"]
        for place, row in enumerate(rows):
            labels[place, : len(row.ids)].masked_fill_(~torch.tensor(row.meta["own"]), -100)
        return batch
