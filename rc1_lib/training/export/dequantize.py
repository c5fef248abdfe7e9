"""Export a dequantised 4-bit base as plain weights, for a server to sample from while QLoRA trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.base_model import load_base, load_tokenizer
from rc1_lib.training.chat_format import format_of
from rc1_lib.training.checkpoint.atomic_folder import absent_folder, check_absent
from rc1_lib.training.derived import REFERENCE, reference_state
from rc1_lib.training.device import Precision, get_device, precision_of, to_device
from rc1_lib.training.export.trained_policy import merged_model
from rc1_lib.training.models import base_name, fingerprint_of, model_section
from rc1_lib.training.recorded_base import check_recorded
from rc1_lib.training.rows import select_rows
from rc1_lib.training.updates.metrics import distance
from rc1_lib.workspace.artifacts import FileState, write_json
from rc1_lib.workspace.file_hashes import sha256_file

STAGE = "dequantize"
RECORD = "dequantized.json"

Dialogue = tuple[list[int], list[bool]]
"""Token ids of a dialogue, and its action mask."""
Read = Callable[[Tensor], Tensor]
"""Maps token ids (1, T) to logits (1, T, V)."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Distance between a model's log-probabilities and those of the 4-bit policy.

    Attributes:
        dialogues: number of held-out dialogues compared.
        tokens: number of assistant tokens compared.
        mean: mean absolute difference of log p, in nats.
        far_share: share of tokens whose log p differs by more than 0.1 nats.
        most_mean: bound of `mean` (`training.parity.mean`).
        most_far_share: bound of `far_share` (`training.parity.far_share`).
    """

    dialogues: int
    tokens: int
    mean: float
    far_share: float
    most_mean: float
    most_far_share: float

    @property
    def passed(self) -> bool:
        """Whether a run would accept the model as the policy. NaN fails."""
        return self.mean <= self.most_mean and self.far_share <= self.most_far_share

    def body(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "pass": self.passed}


@dataclass(frozen=True, slots=True)
class Dequantized:
    """Result of the export.

    Attributes:
        folder: the written folder; None if the model is too far from the policy, and nothing was kept.
        gap: its distance from the policy.
    """

    folder: Path | None
    gap: Gap


class _TooFarError(Exception):
    """Leaves the block that would otherwise keep the folder."""


def export_dequantized(run: Run, target: Path, precision: Precision, prompts: int) -> Dequantized:
    """Export the initial policy of a QLoRA training as plain weights, if they match it.

    Every linear layer gets its dequantised weights. Everything else is as published, or as the warm start trained it.
    The folder is read again as a server would, and compared with the 4-bit policy on held-out dialogues, before it gets
    its final name.

    Args:
        run: with `finetune.method: qlora`.
        target: a folder that does not exist yet.
        precision: of the written weights, and of the comparison.
        prompts: number of held-out dialogues.

    Raises:
        ConfigError: if nothing is in 4 bits, or the initial policy is missing.
        RC1Error: if the target exists, or base or pool cannot be read.
    """
    if run.config.finetune.method != "qlora":
        raise ConfigError(
            f"finetune.method: found '{run.config.finetune.method}', with which training starts from plain weights "
            "that a server can load as they are; only qlora needs this export"
        )
    check_absent(target)
    base = _start_of(run)
    section = model_section(run.config, base)
    tokenizer = load_tokenizer(section)
    form = format_of(tokenizer, run.config.training)
    dialogues = [form.dialogue_ids(row["messages"]) for row in select_rows(run, form).held_out[:prompts]]
    device = get_device()
    computed = precision_of(device, run.config.training.precision)
    torch.set_num_threads(run.config.training.threads)
    policy = load_base(section, device, computed)
    try:
        with absent_folder(target) as folder:
            merged_model(policy, section, precision).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            served: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
                folder, dtype=precision.dtype, use_safetensors=True
            )
            gap = _gap(run, _read_by(policy, device), _read_by(to_device(served, device), device), dialogues)
            if not gap.passed:
                raise _TooFarError
            write_json(folder / RECORD, _record(run, base, policy, precision, folder, gap))
    except _TooFarError:
        return Dequantized(None, gap)
    return Dequantized(target, gap)


def _start_of(run: Run) -> str:
    """Return the path of the initial policy without building anything."""
    if not run.config.training.warm_start.steps:
        base = base_name(run.config, run.workspace)
        check_recorded(Path(base))
        return base
    state, folder = reference_state(run), REFERENCE.path(run)
    if state is not FileState.FRESH:
        raise ConfigError(
            f"{run.workspace.name(folder)}: the warm start, from which training begins, is {state.value}; run rc1 "
            "train to make it (it stops at its first rollout if no server answers yet)"
        )
    return str(folder)


def _read_by(model: nn.Module, device: torch.device) -> Read:
    model.eval()
    return lambda ids_1T: cast(Tensor, model(input_ids=to_device(ids_1T, device)).logits)


@torch.no_grad()
def _gap(run: Run, policy: Read, served: Read, dialogues: Sequence[Dialogue]) -> Gap:
    temperature = run.config.training.rollout.temperature or 1.0
    ours, theirs = list[Tensor](), list[Tensor]()
    for done, (ids, own) in enumerate(dialogues):
        ids_1T = torch.tensor([ids[:-1]])
        own_N = torch.tensor(own[1:]).nonzero()[:, 0]
        said_N1 = torch.tensor(ids[1:])[own_N][:, None]
        for read, found in ((policy, ours), (served, theirs)):
            logprobs_NV = (read(ids_1T)[0].float().cpu()[own_N] / temperature).log_softmax(dim=-1)
            found.append(logprobs_NV.gather(1, said_N1)[:, 0])
        report_progress(STAGE, done + 1, len(dialogues), "held-out dialogues read")
    apart, bounds = distance(torch.cat(theirs), torch.cat(ours)), run.config.training.parity
    return Gap(
        dialogues=len(dialogues), tokens=sum(map(len, ours)),
        mean=apart["policy/sampling_gap"], far_share=apart["policy/sampling_far"],
        most_mean=bounds.mean, most_far_share=bounds.far_share,
    )  # fmt: skip


def _record(
    run: Run, base: str, policy: PreTrainedModel, precision: Precision, folder: Path, gap: Gap
) -> Mapping[str, Any]:
    packed: Any = policy.config.quantization_config
    return {
        "base": {
            "name": run.workspace.name(Path(base)) if Path(base).is_dir() else base,
            "sha256": fingerprint_of(run.config, base),
            "base_model": run.config.base_model,
        },
        "quantization": {
            "type": packed.bnb_4bit_quant_type,
            "double": packed.bnb_4bit_use_double_quant,
            "compute": str(packed.bnb_4bit_compute_dtype).removeprefix("torch."),
        },
        "precision": precision.value,
        "profile": run.config.profile,
        "gap": gap.body(),
        "files": {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
    }
