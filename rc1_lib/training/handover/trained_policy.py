"""A checkpoint's policy, outside of a training: what it was started from, and the run's engine that plays it."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.api import Setup
from rc1_lib.training.checkpoint.fault import CheckpointError
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.models import base_name, fingerprint_of
from rc1_lib.training.registry import make_engine


def start_of(run: Run, sha256: str | None, whose: str) -> str:
    """The policy that an adapter is an adapter of, as transformers takes it.

    Args:
        run: whose base.
        sha256: of the policy that was started from.
        whose: names what was trained, for the refusal.

    Raises:
        CheckpointError: when that policy is not there, or another one.
    """
    warm = bool(run.config.training.warm_start.steps)
    base = str(REFERENCE.path(run)) if warm else base_name(run.config, run.workspace)
    if warm and not Path(base).is_dir():
        raise CheckpointError(f"{base}: the policy that was started from is not there; train again: rc1 train")
    if fingerprint_of(run.config, base) != sha256:
        raise CheckpointError(
            f"{whose}: was trained from another policy than {run.workspace.name(Path(base))} is now; give the "
            f"flags of its own training, or train again"
        )
    return base


def engine_of(run: Run, base: str, state: CheckpointState) -> PolicyEngine:
    """The run's engine with the checkpoint's policy; close it.

    Raises:
        ConfigError: when the engine is one whose policy cannot be handed over.
    """
    name = run.config.training.engine
    engine = make_engine(name)
    if not isinstance(engine, PolicyEngine):
        raise ConfigError(
            f"training.engine: found '{name}', whose policy cannot be handed over; it has to be a PolicyEngine"
        )
    engine.setup(Setup.of_run(run.config, base, int(state.values["seed"])))
    engine.load_adapter(state.tensors["adapter"])
    return engine
