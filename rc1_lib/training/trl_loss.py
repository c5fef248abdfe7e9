"""What TRL's trainers need around them where they are no more than a loss."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from rc1_lib.training.device import Precision


def arguments_of_a_loss(device: torch.device, precision: Precision, seed: int) -> dict[str, Any]:
    """What the configuration of any trainer of TRL is given where it saves, reports and drives nothing."""
    return {
        "output_dir": tempfile.gettempdir(),  # asked for, but nothing is saved through TRL
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",
        "bf16": precision is Precision.BF16,
        "fp16": precision is Precision.FP16,
        "activation_checkpointing": False,
        "seed": seed % 2**32,
        "max_steps": 1,
    }


@contextmanager
def weights_kept(model: nn.Module) -> Iterator[None]:
    """While a trainer of TRL is made over the model: what is trained keeps its weights and their precision.

    Beside a quantised base TRL rounds an adapter to bf16, which small steps would not move any more.
    """
    kept = {name: value.data for name, value in model.named_parameters() if value.requires_grad}
    yield
    for name, value in model.named_parameters():
        if name in kept:
            value.data = kept[name]


def figures_of(metrics: Mapping[str, dict[str, list[float]]]) -> dict[str, float]:
    """What a trainer measured of its last loss, then forgotten.

    Args:
        metrics: mode -> name -> values. TRL keeps them by the model's mode; it stands still in either, and is in that
            of training where states are computed again.
    """
    (measured,) = (of_mode for of_mode in metrics.values() if of_mode)
    found = {name: float(values[-1]) for name, values in measured.items()}
    measured.clear()
    return found
