"""A control: a short training on an uninformative reward, from which nothing can be learned.

It has the warm start, rows, curriculum, engine and evaluation of a real run. Only the scores say nothing about the
episodes. If its policy then succeeds more often, the evaluation leaks.

Its files are in a workspace of its own below the run's, so it cannot touch any checkpoint, report or `latest` of a real
run. Every one of its checkpoints is marked as a control's.
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
"""Key in checkpoints; null in those of a real run."""
_CONSTANT = 0.5


@dataclass(frozen=True, slots=True)
class Control:
    """The scores of a control's episodes.

    Attributes:
        kind: `random`: numbers in [0, 1) that depend only on seed, step and position in the step, so that a resumed run
            draws the same; `constant`: the same for all.
    """

    kind: ControlKind

    def scores(self, seed: int, step: int, count: int) -> list[float]:
        """Return scores for the episodes of a step, whatever happened in them."""
        if self.kind == "constant":
            return [_CONSTANT] * count
        return [_uniform(f"control/{seed}/{step}/{place}") for place in range(count)]


class Controlled:
    """A strategy whose scores come from the control."""

    def __init__(self, strategy: Strategy, control: Control, seed: int) -> None:
        """Wrap a strategy that adds `scores`, for a run with this seed."""
        self._strategy, self._control, self._seed = strategy, control, seed

    def attach_engine(self, engine: Engine) -> None:
        """Attach the engine to the wrapped strategy."""
        self._strategy.attach_engine(engine)

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Let the strategy play, and replace its scores."""
        found = self._strategy.on_batch(batch)
        batch["scores"] = scores = self._control.scores(self._seed, batch["step"], len(batch["scores"]))
        played = {name: value for name, value in found.items() if not name.startswith("reward/")}
        return {**played, "reward/control": sum(scores) / len(scores)}


def controlled(run: Run, control: Control) -> Run:
    """Return the run that a control trains: few steps, no judge, no early stopping, and its own workspace."""
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
