"""What both trainers of `bench_trl_ppo.py` are given, and how both are measured. Needs nothing but psutil and torch."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import torch


@dataclass(frozen=True)
class Job:
    """One step's work, and how often it is done.

    Attributes:
        base: folder of the model and its tokenizer.
        prompts: a JSON file of token ids, as many prompts as episodes of a step.
        rows: the same prompts as rows of the pool, one JSON object a line.
        steps: steps that are timed; one more goes before them.
        episodes: of a step.
        response: tokens of a response at most.
        ends: whether a response ends where the model says so; else every one has all its tokens.
        epochs, minibatches: passes over a step's episodes, and parts of a pass.
        processor_cores: that the trainer may use.
        temperature, lr, clip, kl_coef, rank, alpha, targets: of sampling, optimizer, loss and adapter.
    """

    base: str
    prompts: str
    rows: str
    steps: int
    episodes: int
    response: int
    ends: bool
    epochs: int
    minibatches: int
    processor_cores: int
    temperature: float
    lr: float
    clip: float
    kl_coef: float
    rank: int
    alpha: int
    targets: list[str]

    @classmethod
    def read(cls, path: str) -> Job:
        """The job of a file."""
        return cls(**json.loads(Path(path).read_bytes()))

    def write(self, path: Path) -> Path:
        """Write it to a file."""
        path.write_text(json.dumps(asdict(self)))
        return path


def reward(ids: torch.Tensor) -> torch.Tensor:
    """What a response is worth that ends with these tokens: whether the last one is odd. It costs nothing."""
    return (ids % 2).float()


class Meter:
    """Seconds and CPU seconds between marks, and the most memory held, of this process and those it started."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, float]] = []

    def mark(self) -> None:
        """A step has ended."""
        self._marks.append((time.perf_counter(), sum(_cpu_s(one) for one in _family())))

    def report(self, **more: Any) -> str:
        """One line of JSON: what lay between the marks."""
        pairs = list(zip(self._marks, self._marks[1:], strict=False))
        return json.dumps(
            {
                "seconds": [after[0] - before[0] for before, after in pairs],
                "cpu_seconds": [after[1] - before[1] for before, after in pairs],
                "peak_mib": sum(_peak_mib(one.pid) for one in _family()),
                **more,
            }
        )


def _family() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _cpu_s(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def _peak_mib(pid: int) -> int:
    """The kernel's own high-water mark of resident memory."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None, "Linux says how much memory a process has held at most"
    return int(found[1]) // 1024
