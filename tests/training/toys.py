"""The smallest engine, strategy and batches that a trainer can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rc1_lib.training.api import Engine


@dataclass(frozen=True, slots=True)
class ScaleSetup:
    """The learning rate."""

    lr: float


class Scale(Engine):
    """Learns one factor w so that w * x = 2 * x, with noise from the global generator."""

    def setup(self, setup: ScaleSetup) -> None:
        self.calls = ["setup"]
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW([self.weight], lr=setup.lr)

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        self.calls.append("train_step")
        loss = (self.weight * batch["x"] - 2 * batch["x"] + 0.01 * torch.randn(1)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": float(loss.detach()), "lr": float(self.optimizer.param_groups[0]["lr"])}

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        self.calls.append("eval_step")
        return {"loss": float((self.weight.detach() - 2).abs()), "tokens": float(len(batch["x"]))}

    def state_dict(self) -> dict[str, Any]:
        return {"adapter": {"w": self.weight.detach()}, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.weight.copy_(state["adapter"]["w"])
        self.optimizer.load_state_dict(state["optimizer"])


class Doubling:
    """A strategy that puts x = 2 * n into the batch."""

    def attach_engine(self, engine: Scale) -> None:
        engine.calls.append("attach_engine")
        self.engine = engine

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        self.engine.calls.append("on_batch")
        batch["x"] = 2 * batch["n"]
        return {"rows": float(len(batch["n"]))}


class Counting:
    """A source of the batches 1, 2, 3, ..."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> dict[str, Any]:
        self.count += 1
        return {"n": torch.full((2,), float(self.count))}

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]
