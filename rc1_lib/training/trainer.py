"""The loop: batch, strategy, engine, callbacks; and its state as a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from torch import Tensor

from rc1_lib.training.api import Batches, Callback, Engine, Setup, Strategy
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.save_load import not_finite
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.diverged import DivergedError, naming_step
from rc1_lib.training.memory import used_mb
from rc1_lib.training.process import begin_step, restore_rng, rng_state, seed_rng

_ENGINE = "engine"


class Trainer:
    """Runs `engine.setup`, then batch → `strategy.on_batch` → `engine.train_step` → callbacks, step by step.

    Attributes:
        engine: the engine.
        step: finished steps.
        max_steps: the step after which training ends.
        stop_reason: why it ended before that, or None.
    """

    def __init__(
        self,
        engine: Engine,
        setup: Setup,
        strategy: Strategy,
        batches: Batches,
        callbacks: Sequence[Callback],
        max_steps: int,
        seed: int,
        facts: Mapping[str, Any],
    ) -> None:
        """Put the parts together.

        Args:
            engine: holds the model.
            setup: what it is set up by.
            strategy: decides what is learned from.
            batches: where batches come from.
            callbacks: called in this order.
            max_steps: the step after which training ends.
            seed: of the global generators, for what libraries draw from them.
            facts: JSON that every checkpoint carries: configuration, fingerprints of base and data, versions.
        """
        self.engine, self._setup = engine, setup
        self.strategy, self.batches = strategy, batches
        self.callbacks, self.max_steps, self.facts = list(callbacks), max_steps, dict(facts)
        self._seed = seed
        self.step = 0
        self.stop_reason: str | None = None

    def fit(self, resume: CheckpointState | None) -> int:
        """Train until `max_steps` or until a callback stops it.

        Args:
            resume: the state to go on from.

        Returns:
            The number of finished steps.

        Raises:
            CheckpointError: when `resume` is not a state of this engine or these callbacks.
            DivergedError: when a step, or what it leaves to go on from, has left the finite numbers; it is named.
            RC1Error: what a callback raises at the end, after all of them have ended; a later one's is its note.
        """
        seed_rng(self._seed)  # a state to go on from brings its own
        self.engine.setup(self._setup)
        with closing(self.engine):
            self.strategy.attach_engine(self.engine)
            if resume is not None:
                self.restore(resume)
            for callback in self.callbacks:
                callback.on_start(self)
            while self.step < self.max_steps and self.stop_reason is None:
                self._one_step()
            self._end()
        return self.step

    def stop(self, reason: str) -> None:
        """End training after this step."""
        self.stop_reason = reason

    def snapshot(self) -> CheckpointState:
        """The state of everything, so that a new process goes on bit for bit as this one would.

        Raises:
            DivergedError: when a number in it is not finite: a moment of the optimizer may be while gradient and
                weights are not, and then that weight is learned no more.
        """
        state = self.engine.state_dict()
        flat = {name: part for name, part in state.items() if _is_flat(part)}
        nested = {name: part for name, part in state.items() if name not in flat}
        assert not state.keys() & {"batches", "callbacks", "rng"}, "these names are the trainer's"
        nested |= {
            "batches": self.batches.state_dict(),
            "callbacks": {callback.name: callback.state_dict() for callback in self.callbacks},
            "rng": rng_state(),
        }
        taken = CheckpointState(flat, {**self.facts, _ENGINE: sorted(state), "step": self.step}, nested)
        for fault in not_finite(taken):
            raise DivergedError(f"{fault}, so that no checkpoint of it is written: lower the learning rate")
        return taken

    def restore(self, state: CheckpointState) -> None:
        """Put back what `snapshot` took.

        Raises:
            CheckpointError: when another engine or other callbacks wrote it.
        """
        names = state.values[_ENGINE]
        mine = sorted(self.engine.state_dict())
        if names != mine:
            raise CheckpointError(
                f"the checkpoint of step {state.step} holds an engine's {', '.join(names)}; this one has "
                f"{', '.join(mine)}: resume with the engine that wrote it"
            )
        self.engine.load_state_dict({name: _part(state, name) for name in names})
        self.batches.load_state_dict(state.part("batches"))
        saved = state.part("callbacks")
        for callback in self.callbacks:
            if callback.name in saved:
                callback.load_state_dict(saved[callback.name])
        self.step = state.step
        restore_rng(state.part("rng"))

    def _one_step(self) -> None:
        began = time.perf_counter()
        begin_step(self._seed, self.step)
        batch = self.batches.next()
        with naming_step(self.step + 1):
            prepared = self.strategy.on_batch(batch)
            learned = self.engine.train_step(batch)
        assert not prepared.keys() & learned.keys(), f"both report {sorted(prepared.keys() & learned.keys())}"
        self.step += 1
        metrics: dict[str, float | None] = {**prepared, **learned}
        metrics |= {"mem_used_mb": used_mb(), "sec_per_step": time.perf_counter() - began}
        with naming_step(self.step):
            for callback in self.callbacks:
                callback.on_step(self, metrics)

    def _end(self) -> None:
        # What one callback finds wrong must not keep those after it from ending: the last step is saved there.
        errors: list[Exception] = []
        for callback in self.callbacks:
            try:
                callback.on_end(self)
            except Exception as error:
                errors.append(error)
        for later in errors[1:]:
            errors[0].add_note(f"at the end also: {later}")
        if errors:
            raise errors[0]


def _is_flat(part: Any) -> bool:
    """Whether a part of the state is a plain group of named tensors."""
    return isinstance(part, dict) and bool(part) and all(isinstance(leaf, Tensor) for leaf in part.values())


def _part(state: CheckpointState, name: str) -> Any:
    return state.tensors[name] if name in state.tensors else state.part(name)
