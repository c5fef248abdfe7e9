"""The warm start: supervised training of all the base's weights on the pool's demonstrations, in plain PyTorch.

The result is the initial policy of PPO and the pinned reference of its KL: a folder for `from_pretrained`, with a
record of its inputs. If the inputs or the bytes no longer match the record, it is made again. A warm start that was
killed goes on from its last checkpoint, to the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim import AdamW

from rc1_lib.records import MeasuredRow
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.base_model import enable_gradient_checkpointing, load_base, load_tokenizer
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.checkpoint import atomic_folder
from rc1_lib.training.checkpoint.atomic_folder import LATEST, CheckpointError
from rc1_lib.training.checkpoint.manifest import steps
from rc1_lib.training.checkpoint.save_load import load_to_resume, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.derived import RECORD, REFERENCE, reference_state, state_of, vouched_base
from rc1_lib.training.device import Precision, get_device, precision_of, to_device
from rc1_lib.training.diverged import check_finite_gradient, check_finite_loss, naming_step
from rc1_lib.training.labelled_rows import ShuffledRows
from rc1_lib.training.models import check_recorded, fingerprint_of, model_section
from rc1_lib.training.resource_errors import WARMING_UP, naming_breakdowns
from rc1_lib.training.run_paths import SFT_UNFINISHED
from rc1_lib.training.train_config import ModelSection
from rc1_lib.training.updates.batch import Demonstration, micro_batches
from rc1_lib.workspace.artifacts import FileState, sha256_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file

_LEFT = "The same command goes on from the warm start's last checkpoint, if there was time for one"
SAVED_EVERY_S = 600.0
"""Seconds between two checkpoints of a warm start. Its bytes do not depend on when it was saved."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Folder or hub name of the initial policy, and its fingerprint."""

    base: str
    sha256: str


def reference_of(run: Run, rows: Sequence[MeasuredRow], form: ChatFormat) -> Reference:
    """Return the initial policy. Make the warm start if it is missing or stale; with 0 steps, use the base itself.

    Raises:
        RC1Error: if the base cannot be loaded, or differs from the ticket.
        DivergedError: if a number is NaN or infinite.
        BreakdownError: if the disk or memory is full.
    """
    config, folder = run.config, REFERENCE.path(run)
    with vouched_base(run) as base:
        check_recorded(Path(base))
        if not config.training.warm_start.steps:
            return Reference(base, fingerprint_of(config, base))
        inputs = {**REFERENCE.inputs(run), "rows": sha256_json([row["id"] for row in rows])}
        if state_of(folder, inputs) is not FileState.FRESH:
            with naming_breakdowns(_LEFT, WARMING_UP):
                learner, curve = _learn(run, base, rows, form, inputs)
                with atomic_folder.replaced_folder(folder) as temporary:
                    _write(temporary, run, base, learner, curve, inputs)
        _forget(run)  # also what a kill after the last file left
    return Reference(str(folder), fingerprint_of(config, str(folder)))


def warm_start_due(run: Run) -> bool:
    """Whether training would have to make a warm start first."""
    return bool(run.config.training.warm_start.steps) and reference_state(run) is not FileState.FRESH


def padded_batch(dialogues: Sequence[Demonstration], pad_id: int) -> dict[str, Tensor]:
    """Pad B dialogues to one batch; the longest has T tokens.

    Returns:
        `input_ids` and `attention_mask`, int64 [B, T], padded on the right; `action_mask`, bool [B, T], True for tokens
        of the assistant. Tool results are not learned.
    """
    longest = max(len(one.ids) for one in dialogues)

    def padded(values: Iterable[Sequence[int]], filler: int) -> Tensor:
        return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in values])

    return {
        "input_ids": padded((one.ids for one in dialogues), pad_id),
        "attention_mask": padded(([1] * len(one.ids) for one in dialogues), 0),
        "action_mask": padded((one.action_mask for one in dialogues), False),
    }


def _learn(
    run: Run, base: str, rows: Sequence[MeasuredRow], form: ChatFormat, inputs: dict[str, str]
) -> tuple[_Learner, list[float]]:
    """Do all steps, from the last checkpoint of the same inputs if there is one, and return the loss of each."""
    settings, seed = run.config.training.warm_start, run.config.seeds[0]
    torch.set_num_threads(run.config.training.threads)
    learner = _Learner(run, base, form.pad_id)
    batches = ShuffledRows(_Encoded(rows, form), settings.batch_size, seed)
    curve = _resumed(run, learner, batches, inputs)
    saved = time.monotonic()
    for step in range(len(curve), settings.steps):
        torch.manual_seed(seed + step)  # of dropout, where a base has any
        with naming_step(step + 1):
            loss = learner.step(batches.next()["demonstrations"], settings.lr * (1.0 - step / settings.steps))
        curve.append(round(loss, 5))
        report_progress("warm start", step + 1, settings.steps, f"loss {loss:.3f}")
        if time.monotonic() - saved >= SAVED_EVERY_S and len(curve) < settings.steps:
            _save(run, learner, batches, curve, inputs)
            saved = time.monotonic()
    return learner, curve


def _save(run: Run, learner: _Learner, batches: ShuffledRows, curve: list[float], inputs: dict[str, str]) -> None:
    folder, ledger = _unfinished(run)
    values = {"step": len(curve), "loss": curve, "inputs": inputs, "rows": batches.state_dict()}
    written = save_checkpoint(learner.state(values), folder, ledger)
    for older in steps(folder).values():
        if older != written:
            atomic_folder.remove(older)


def _resumed(run: Run, learner: _Learner, batches: ShuffledRows, inputs: dict[str, str]) -> list[float]:
    """Restore learner and rows from the last checkpoint, and return the losses so far.

    Raises:
        CheckpointError: when the checkpoint is damaged.
    """
    folder, ledger = _unfinished(run)
    if not (folder / LATEST).exists():
        return []
    try:
        state = load_to_resume((folder / LATEST).resolve(), ledger)
    except CheckpointError as error:
        raise CheckpointError(
            f"{error}. A warm start keeps one checkpoint: remove {folder}, and the same command begins it again"
        ) from error
    if state.values["inputs"] != inputs:
        return []
    learner.load(state)
    batches.load_state_dict(state.values["rows"])
    report_progress("warm start", state.step, run.config.training.warm_start.steps, "goes on")
    return list(state.values["loss"])


def _unfinished(run: Run) -> tuple[Path, Path]:
    """Return the folder of an unfinished warm start's checkpoints, and their ledger."""
    folder = run.workspace.path(SFT_UNFINISHED)
    return folder, folder / "ledger.jsonl"


def _forget(run: Run) -> None:
    folder, _ = _unfinished(run)
    with atomic_folder.write_lock(folder.parent):
        atomic_folder.recover(folder.parent, atomic_folder.only(folder))  # what a kill in the removal left
        if folder.exists():
            atomic_folder.remove(folder)


def _write(folder: Path, run: Run, base: str, learner: _Learner, curve: list[float], inputs: dict[str, str]) -> None:
    model = load_base(_section(run, base), torch.device("cpu"), Precision.FP32)
    model.load_state_dict(dict(learner.model.named_parameters()), strict=False)
    model.save_pretrained(folder)
    load_tokenizer(_section(run, base)).save_pretrained(folder)
    files = {path.name: sha256_file(path) for path in sorted(folder.iterdir())}
    write_json(folder / RECORD, {"inputs": inputs, "files": files, "loss": curve})


def _section(run: Run, base: str) -> ModelSection:
    """Return the model section for training all weights, without quantisation."""
    section = model_section(run.config, base)
    return section.model_copy(update={"quantization": None, "lora": section.lora.model_copy(update={"enable": False})})


class _Learner:
    """Trains all weights of the base. They are fp32 in every precision: a small step moves few numbers of 16 bits."""

    def __init__(self, run: Run, base: str, pad_id: int) -> None:
        training, self._device = run.config.training, get_device()
        settings = training.warm_start
        self._precision = precision_of(self._device, settings.precision or training.precision)
        self._most, self._pad_id = settings.micro_tokens, pad_id
        self.model = load_base(_section(run, base), self._device, Precision.FP32)
        if training.gradient_checkpointing:
            enable_gradient_checkpointing(self.model)
        self.model.train()
        self._optimizer = AdamW(self.model.parameters(), weight_decay=0.0)
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=self._precision is Precision.FP16)

    def step(self, dialogues: Sequence[Demonstration], rate: float) -> float:
        """Do one optimizer step and return the loss, the mean over the assistant's tokens in nats.

        Raises:
            DivergedError: if the loss or, without a gradient scaler, a gradient is not finite.
        """
        total, loss = sum(sum(one.action_mask) for one in dialogues), 0.0
        for part in self._parts(dialogues):
            share = self._nats(part) / total
            self._scaler.scale(share).backward()  # type: ignore[no-untyped-call]
            loss += float(share.detach())
        check_finite_loss(loss)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._scaler.unscale_(self._optimizer)
        check_finite_gradient(self.model.parameters(), self._scaler)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad()
        return loss

    def _parts(self, dialogues: Sequence[Demonstration]) -> list[Sequence[Demonstration]]:
        if self._most is None:
            return [dialogues]
        lengths = [len(one.ids) for one in dialogues]
        return [[dialogues[at] for at in part] for part in micro_batches(range(len(lengths)), lengths, self._most)]

    def state(self, values: dict[str, Any]) -> CheckpointState:
        """Return weights and optimizer as a checkpoint with these `values`."""
        optimizer = self._optimizer.state_dict()
        moments = {
            name: {str(number): of[name] for number, of in optimizer["state"].items()}
            for name in ("exp_avg", "exp_avg_sq")
        }
        weights: dict[str, Tensor] = dict(self.model.named_parameters())
        # Fewer than the warm start's steps, if the gradient scaler skipped some
        taken = {"taken": max((float(of["step"]) for of in optimizer["state"].values()), default=0.0)}
        return CheckpointState(
            {"model": weights, **moments}, {**values, **taken}, {"scaler": self._scaler.state_dict()}
        )

    def load(self, state: CheckpointState) -> None:
        """Restore what `state` returned."""
        self.model.load_state_dict(state.tensors["model"], strict=False)
        optimizer = self._optimizer.state_dict()
        optimizer["state"] = {
            int(number): {
                "step": torch.tensor(state.values["taken"]),
                "exp_avg": average,
                "exp_avg_sq": state.tensors["exp_avg_sq"][number],
            }
            for number, average in state.tensors["exp_avg"].items()
        }
        self._optimizer.load_state_dict(optimizer)
        self._scaler.load_state_dict(state.nested["scaler"])

    def _nats(self, dialogues: Sequence[Demonstration]) -> Tensor:
        """Compute the summed cross-entropy. Logits are computed only for the assistant's tokens, to save memory."""
        batch = to_device(padded_batch(dialogues, self._pad_id), self._device)
        learned, half = batch["action_mask"][:, 1:], self._precision is not Precision.FP32
        causal = cast(Any, self.model)
        with torch.autocast(self._device.type, dtype=self._precision.dtype, enabled=half):
            states_BTD = causal.get_decoder()(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False
            ).last_hidden_state
            logits_NV = causal.get_output_embeddings()(states_BTD[:, :-1][learned])
        return cross_entropy(logits_NV.float(), batch["input_ids"][:, 1:][learned], reduction="sum")


class _Encoded(Sequence[Demonstration]):
    """Rows as demonstrations, tokenized on access."""

    def __init__(self, rows: Sequence[MeasuredRow], form: ChatFormat) -> None:
        self._rows, self._form = rows, form

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return Demonstration.of(self._rows[index], self._form)
