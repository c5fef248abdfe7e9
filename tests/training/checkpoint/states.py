"""A checkpoint state with every kind of content, and whether two are equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from rc1_lib.training.checkpoint.state import CheckpointState


def trained(seed: int = 0) -> tuple[torch.nn.Module, torch.optim.AdamW, torch.optim.lr_scheduler.LRScheduler]:
    """A linear layer after one AdamW step, with its bias in a separate group."""
    torch.manual_seed(seed)
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW([{"params": [layer.weight]}, {"params": [layer.bias], "lr": 0.5}], lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    scheduler.step()
    return layer, optimizer, scheduler


def state_of(step: int) -> CheckpointState:
    """A state whose content depends only on its step."""
    layer, optimizer, scheduler = trained(step)
    return CheckpointState(
        {
            "adapter": {"a.weight": torch.full((2, 3), step, dtype=torch.bfloat16), "b": torch.arange(step + 1)},
            "value_head": dict(layer.state_dict()),
        },
        {"kl_coef": 0.1 + 0.2, "sampler": {"position": step * 7}, "reference": "ab" * 32, "step": step},
        {
            "optimizer": optimizer.state_dict(),
            "scheduler": {name: value for name, value in scheduler.state_dict().items() if name != "lr_lambdas"},
            "rng": {"rollout": torch.Generator().manual_seed(step).get_state()},
        },
    )


def equal(a: Any, b: Any) -> bool:
    """Whether two states, or parts of them, are equal bit for bit, dtypes included."""
    if isinstance(a, CheckpointState):
        return equal([a.tensors, a.values, a.nested], [b.tensors, b.values, b.nested])
    if isinstance(a, torch.Tensor):
        bits = [one.contiguous().reshape(-1).view(torch.uint8) for one in (a, b)]
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(*bits)
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b
