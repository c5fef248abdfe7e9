"""A pilot: a few timed steps of the planned training, whose results are discarded."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rc1_lib.judge.prompt import dialogue_sha256
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.device import get_device
from rc1_lib.training.dry_run import dry_run
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.ranks.processes import gpus_of
from rc1_lib.training.registry import make_engine

STAGE = "pilot"


@dataclass(frozen=True, slots=True)
class PilotStep:
    """The cost of a step.

    Attributes:
        seconds: in total.
        playing: the part for playing and judging the episodes.
        dialogues: how many different ones were played and judged; 0 if the step learned from the pool's.
    """

    seconds: float
    playing: float
    dialogues: int


@dataclass(frozen=True, slots=True)
class Pilot:
    """The result of a pilot.

    Attributes:
        steps: the timed steps, without the first one.
        device: the device's kind in torch.
        gpus: the number of GPUs, one for each process that shared the steps; 0 on a CPU.
    """

    steps: tuple[PilotStep, ...]
    device: str
    gpus: int


def run_pilot(prepared: Prepared, seed: int, steps: int) -> Pilot:
    """Play and learn one warm-up step and `steps` timed ones. A live judge is asked, and its replies are kept."""
    engine = make_engine(prepared.run.config.training.engine)
    timed: list[PilotStep] = []
    with dry_run(prepared, seed, engine) as run:
        for number in range(steps + 1):
            report_progress(STAGE, number, steps + 1, "to warm up" if number == 0 else "")
            batch = run.next_batch()
            began = time.perf_counter()
            run.strategy.on_batch(batch)
            played = time.perf_counter()
            engine.train_step(batch)
            dialogues = len({dialogue_sha256(one.messages) for one in batch.get("trajectories", ())})
            timed.append(PilotStep(time.perf_counter() - began, played - began, dialogues))
    report_progress(STAGE, steps + 1, steps + 1)
    return Pilot(tuple(timed[1:]), get_device().type, gpus_of(prepared.run.config.training))
