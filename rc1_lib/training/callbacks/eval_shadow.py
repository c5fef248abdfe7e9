"""Held-out rows looked at now and then while training goes on: no gate, a look at whether learning generalises."""

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

Look = Callable[[Engine], dict[str, float]]
"""What an engine does on held-out rows, by name."""


class EvalShadow(Callback):
    """Adds `eval/<metric>` to the metrics of every n-th step, and of the last that is configured.

    It comes before whatever reads a step's seconds: those of the look are among them.
    """

    name = "eval_shadow"

    def __init__(self, look: Look, every: int) -> None:
        """Look every `every` steps."""
        assert every >= 1
        self._look, self._every = look, every

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Look where it is time."""
        if trainer.step % self._every and trainer.step != trainer.max_steps:
            return
        began = time.perf_counter()
        metrics.update({HELD_OUT + name: value for name, value in self._look(trainer.engine).items()})
        metrics[SECONDS] = (metrics.get(SECONDS) or 0.0) + time.perf_counter() - began


def reads(batches: Sequence[dict[str, Any]]) -> Look:
    """The engine's own metrics on these batches, which count by their tokens."""
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


def plays(rows: Sequence[MeasuredRow]) -> Look:
    """Figures of episodes on these rows, by the policy of that step.

    Every look draws by the same random numbers, so that what differs between two of them is the policy.
    """
    assert rows
    keys = [f"{EvalShadow.name}/{row['id']}" for row in rows]

    def look(engine: Engine) -> dict[str, float]:
        assert isinstance(engine, PolicyEngine), "an engine of a run plays"
        played = engine.play(rows, keys, temperature=engine.temperature, seed=engine.seed, iteration=0)
        return summary([one.outcome for one in played])

    return look


def looks_of(rows: Sequence[MeasuredRow], look: ShadowLook) -> list[EvalShadow]:
    """The looks that a run takes; none where none is asked for, so that its checkpoints do not name any."""
    return [] if look.every_steps is None else [EvalShadow(plays(rows), look.every_steps)]
