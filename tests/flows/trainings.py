"""Trainings through Prefect in their own workspaces, and their results."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import State

from flows.train import train
from rc1_lib.run import Run
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.workspace.artifacts import read_json
from tests.flows.workers import at_the_server

RUN = "checkpoints/rc1"
LAST = f"{RUN}/step_00004"


@dataclass(frozen=True)
class Ended:
    """A workspace and the final state of a flow on it."""

    run: Run
    state: State[Any]

    @property
    def report(self) -> Any:
        return read_json(self.run.workspace.path("reports/train.json"))


def start(run: Run, **parameters: Any) -> State[Any]:
    """Train in a run's workspace, with its overrides; without an evaluation by default."""
    chosen = {"overrides": list(run.overrides), "workspace": str(run.workspace.root), "evaluate": False}
    state: State[Any] = train(**{**chosen, **parameters}, return_state=True)
    return state


def as_a_process(server: str, storage: str, workspace: str, *overrides: str) -> None:
    """Train as a worker's process does, with its exit code."""
    with at_the_server(server, storage):
        state: State[Any] = train(workspace=workspace, overrides=list(overrides), evaluate=False, return_state=True)
    print(state.name, state.message)
    sys.exit(0 if state.is_completed() else 1)


def cached(run: Run) -> int:
    (one,) = read_json(run.workspace.path("reports/train.json"))["runs"]
    return int(one["cached"])


def checkpoint_hashes(run: Run, folder: str = RUN) -> dict[str, str]:
    """Checkpoint -> hash."""
    return {path.name: fingerprint(path) for path in sorted(run.workspace.path(folder).glob("step_*"))}


def logged(run: Run) -> list[int]:
    return [line["step"] for line in MetricsLog(run.workspace.path("reports/metrics.jsonl")).read()]


def alter(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
