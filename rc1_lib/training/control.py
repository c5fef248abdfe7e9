"""A control: a short training on a reward without information, which nothing can be learned from.

It has the warm start, the rows, the curriculum, the engine and the evaluation of a real run; only what the episodes are
worth says nothing about them. Where its policy succeeds more often afterwards, the evaluation leaks.

Its files lie in a workspace of its own below the run's, so that no checkpoint, report or `latest` of a real run can be
touched, and every one of its checkpoints names it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from rc1_lib.config.engines import ControlKind
from rc1_lib.run import Run
from rc1_lib.training.api import Engine, Strategy
from rc1_lib.training.run_paths import CONTROLS
from rc1_lib.workspace.artifacts import Workspace

FACT = "control"
"""What checkpoints call it; null in those of a real run."""
_CONSTANT = 0.5


@dataclass(frozen=True, slots=True)
class Control:
    """What episodes are worth in a control.

    Attributes:
        kind: `random`: a number in [0, 1) that hangs on seed, step and place in the step alone, so that a resumed run
            draws the same; `constant`: the same for all.
    """

    kind: ControlKind

    def scores(self, seed: int, step: int, count: int) -> list[float]:
        """What the episodes of a step are worth, whatever was done in them."""
        if self.kind == "constant":
            return [_CONSTANT] * count
        return [_uniform(f"control/{seed}/{step}/{place}") for place in range(count)]


class Controlled:
    """A strategy whose episodes are worth what the control says."""

    def __init__(self, strategy: Strategy, control: Control, seed: int) -> None:
        """Take over a strategy that brings `scores`, for a run of this seed."""
        self._strategy, self._control, self._seed = strategy, control, seed

    def attach_engine(self, engine: Engine) -> None:
        """As the strategy's."""
        self._strategy.attach_engine(engine)

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Let the strategy play, and forget what that was worth."""
        found = self._strategy.on_batch(batch)
        batch["scores"] = scores = self._control.scores(self._seed, batch["step"], len(batch["scores"]))
        played = {name: value for name, value in found.items() if not name.startswith("reward/")}
        return {**played, "reward/control": sum(scores) / len(scores)}


def controlled(run: Run, control: Control) -> Run:
    """The run that a control trains: its own few steps, nobody to score episodes, and a workspace of its own."""
    training = run.config.training
    alone = {
        "reward": training.reward.model_copy(update={"judge": 0.0}),
        "early_stop": training.early_stop.model_copy(update={"metric": None}),
    }
    config = run.config.model_copy(
        update={"steps": training.control.steps, "training": training.model_copy(update=alone)}
    )
    place = Workspace(run.workspace.path(f"{CONTROLS}/{control.kind}"))
    return replace(run, config=config, workspace=place)


def _uniform(name: str) -> float:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") / 2**48
