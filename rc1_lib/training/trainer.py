"""The training loop: batch, strategy, engine, callbacks. Its state is a checkpoint."""

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
from rc1_lib.training.process import after_the_step, begin_step, restore_rng, rng_state, seed_rng

_ENGINE = "engine"


class Trainer:
    """Runs `engine.setup`, then batch → `strategy.on_batch` → `engine.train_step` → callbacks, step by step.

    Attributes:
        engine: holds and trains the model.
        step: number of finished steps.
        max_steps: the step after which training ends.
        stop_reason: why training stopped earlier, or None.
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
        grace_s: float = 0.0,
    ) -> None:
        """Create a trainer; nothing is loaded before `fit`.

        Args:
            engine: holds and trains the model.
            setup: how the engine is set up.
            strategy: decides what to learn from a batch.
            callbacks: called in this order.
            max_steps: the step after which training ends.
            seed: of the global random generators that libraries draw from.
            facts: JSON values for every checkpoint: configuration, fingerprints of base and data, versions.
            grace_s: seconds after a SIGTERM in which the step may end and be saved; 0: it ends the process at once.
        """
        self.engine, self._setup = engine, setup
        self.strategy, self.batches = strategy, batches
        self.callbacks, self.max_steps, self.facts = list(callbacks), max_steps, dict(facts)
        self._seed, self._grace_s = seed, grace_s
        self.step = 0
        self.stop_reason: str | None = None

    def fit(self, resume: CheckpointState | None) -> int:
        """Train until `max_steps`, or until a callback stops training.

        Args:
            resume: the state to resume from, or None.

        Returns:
            The number of finished steps.

        Raises:
            CheckpointError: if `resume` is not a state of this engine.
            DivergedError: if a step, or the state it leaves, has NaN or infinity. The message names the step.
            RC1Error: the first error of a callback at the end, after all of them have ended; later ones are its notes.
        """
        seed_rng(self._seed)  # `restore` overwrites this with the state of the checkpoint
        self.engine.setup(self._setup)
        with closing(self.engine):
            self.strategy.attach_engine(self.engine)
            if resume is not None:
                self.restore(resume)
            for callback in self.callbacks:
                callback.on_start(self)
            with after_the_step(self._grace_s, self.stop):
                while self.step < self.max_steps and self.stop_reason is None:
                    self._one_step()
                self._end()
        return self.step

    def stop(self, reason: str) -> None:
        """Stop training after this step."""
        self.stop_reason = reason

    def snapshot(self) -> CheckpointState:
        """Return the whole state, from which a new process continues bit for bit as this one would.

        Raises:
            DivergedError: if a number in it is not finite. A moment of the optimizer can be infinite while gradient and
                weights are finite; that weight would never change again.
        """
        state = self.engine.state_dict()
        flat = {name: part for name, part in state.items() if _is_flat(part)}
        nested = {name: part for name, part in state.items() if name not in flat}
        assert not state.keys() & {"batches", "callbacks", "rng"}, "these names are reserved for the trainer"
        nested |= {
            "batches": self.batches.state_dict(),
            "callbacks": {callback.name: callback.state_dict() for callback in self.callbacks},
            "rng": rng_state(),
        }
        taken = CheckpointState(flat, {**self.facts, _ENGINE: sorted(state), "step": self.step}, nested)
        for fault in not_finite(taken):
            raise DivergedError(f"{fault}, so no checkpoint is written: lower the learning rate")
        return taken

    def restore(self, state: CheckpointState) -> None:
        """Restore what `snapshot` returned. A callback that it lacks starts from its beginning.

        Raises:
            CheckpointError: if another engine wrote it.
        """
        names = state.values[_ENGINE]
        mine = sorted(self.engine.state_dict())
        if names != mine:
            raise CheckpointError(
                f"the checkpoint of step {state.step} holds an engine state with {', '.join(names)}, but this engine "
                f"has {', '.join(mine)}: resume with the engine that wrote it"
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
        assert not prepared.keys() & learned.keys(), f"reported twice: {sorted(prepared.keys() & learned.keys())}"
        self.step += 1
        metrics: dict[str, float | None] = {**prepared, **learned}
        metrics |= {"mem_used_mb": used_mb(), "sec_per_step": time.perf_counter() - began}
        with naming_step(self.step):
            for callback in self.callbacks:
                callback.on_step(self, metrics)

    def _end(self) -> None:
        # An error in one callback must not keep the later ones from ending: one of them saves the last step.
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
    """Whether a part of the state is a flat dictionary of tensors."""
    return isinstance(part, dict) and bool(part) and all(isinstance(leaf, Tensor) for leaf in part.values())


def _part(state: CheckpointState, name: str) -> Any:
    return state.tensors[name] if name in state.tensors else state.part(name)
