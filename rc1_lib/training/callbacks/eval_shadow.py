"""Evaluate held-out rows from time to time during training.

It is not a gate, but shows whether learning generalises.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rc1_lib.config.curriculum import ShadowLook
from rc1_lib.config.step_metrics import HELD_OUT
from rc1_lib.environment.outcome import summary
from rc1_lib.records import MeasuredRow
from rc1_lib.training.api import Callback, Engine
from rc1_lib.training.callbacks.logs import SECONDS
from rc1_lib.training.engine import PolicyEngine

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer

Evaluate = Callable[[Engine], dict[str, float]]
"""Evaluates an engine on held-out rows; returns metrics by name."""


class EvalShadow(Callback):
    """Adds `eval/<metric>` to the metrics of every n-th step, and of the last configured one.

    It must come before callbacks that read a step's seconds, because it adds its own.
    """

    name = "eval_shadow"

    def __init__(self, look: Evaluate, every: int) -> None:
        """Evaluate every `every` steps."""
        assert every >= 1
        self._look, self._every = look, every

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Evaluate if it is due."""
        if trainer.step % self._every and trainer.step != trainer.max_steps:
            return
        began = time.perf_counter()
        metrics.update({HELD_OUT + name: value for name, value in self._look(trainer.engine).items()})
        metrics[SECONDS] = (metrics.get(SECONDS) or 0.0) + time.perf_counter() - began


def batch_metrics(batches: Sequence[dict[str, Any]]) -> Evaluate:
    """Return a function that averages the engine's own metrics on these batches, weighted by tokens."""
    assert batches

    def look(engine: Engine) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for batch in batches:
            found = engine.eval_step(batch)
            for name, value in found.items():
                sums[name] += value * (1.0 if name == "tokens" else found["tokens"])
        tokens = sums.pop("tokens")
        return {name: total / tokens for name, total in sums.items()}

    return look


def episode_metrics_on(rows: Sequence[MeasuredRow]) -> Evaluate:
    """Return a function that has the current policy play these rows and returns metrics of the episodes.

    Every evaluation uses the same random numbers, so that two of them differ only in the policy.
    """
    assert rows
    keys = [f"{EvalShadow.name}/{row['id']}" for row in rows]

    def look(engine: Engine) -> dict[str, float]:
        assert isinstance(engine, PolicyEngine), "only a PolicyEngine can play"
        played = engine.play(rows, keys, temperature=engine.temperature, seed=engine.seed, iteration=0)
        return summary([one.outcome for one in played])

    return look


def shadow_evaluations(rows: Sequence[MeasuredRow], look: ShadowLook) -> list[EvalShadow]:
    """Return the configured callback, if any. Without one, checkpoints hold no state of it."""
    return [] if look.every_steps is None else [EvalShadow(episode_metrics_on(rows), look.every_steps)]
