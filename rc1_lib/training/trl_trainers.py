"""TRL's trainers by what TRL and transformers document: their arguments, an adapter that stays as it is, their logs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft import PeftModel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, MultiplicativeLR
from transformers import TrainerCallback

from rc1_lib.training.device import Precision
from rc1_lib.training.finite_step import check_finite_gradient
from rc1_lib.training.labelled_rows import IGNORED

NO_ROWS = [{"input_ids": [0, 0], "labels": [IGNORED, 0]}]
"""`SFTTrainer` wants rows when it is made; those that it learns from come with each step."""
_COPY = "ref"
"""TRL's name of its copy of an adapter."""


def arguments_of_a_step(device: torch.device, precision: Precision, seed: int) -> dict[str, Any]:
    """What any trainer of TRL is told that learns a step's data and saves nothing."""
    return {
        "output_dir": tempfile.gettempdir(),  # required
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",
        "bf16": precision is Precision.BF16,
        "fp16": precision is Precision.FP16,
        "activation_checkpointing": False,  # the policy does it where it is asked for
        "seed": seed % 2**32,
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
    }


def rates_kept(optimizer: Optimizer) -> LRScheduler:
    """A schedule that leaves the learning rates as the run's own has set them."""
    return MultiplicativeLR(optimizer, lambda _: 1.0)


@contextmanager
def adapter_kept(model: PeftModel) -> Iterator[None]:
    """While a trainer of TRL is made over the model: its adapter keeps its precision and gets no copy.

    TRL rounds the adapter of a quantised base to bf16, which small steps would not move any more. It copies an adapter
    that it did not make, to compare with. An adapter of RC1 begins as one that changes nothing; without a copy TRL
    compares with the model without it, which is the same.
    """
    kept = {name: value.data for name, value in model.named_parameters() if value.requires_grad}
    yield
    if _COPY in model.peft_config:
        model.delete_adapter(_COPY)
    for name, value in model.named_parameters():
        if name in kept:
            value.data = kept[name]


class Logged(TrainerCallback):
    """Keeps what a trainer logs."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._logs: list[dict[str, float]] = []

    def taken(self) -> list[dict[str, float]]:
        """The logs since the last call."""
        logs, self._logs = self._logs, []
        return logs

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        """Keep it, but for a training's summary."""
        if logs is not None and "train_runtime" not in logs:
            self._logs.append(dict(logs))


class FiniteSteps(TrainerCallback):
    """Refuses a step of the optimizer along gradients that are not finite."""

    def __init__(self, optimizer: Optimizer, scaler: torch.amp.GradScaler | None) -> None:
        """Before the steps of `optimizer`; a scaler, for fp16, skips such steps itself."""
        self._optimizer, self._scaler = optimizer, scaler

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the gradients.

        Raises:
            DivergedError: when one is not finite.
        """
        parameters = [each for group in self._optimizer.param_groups for each in group["params"]]
        check_finite_gradient(parameters, self._scaler)
