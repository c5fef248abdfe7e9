"""Every source of randomness in this process, as a tree that a checkpoint can hold."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

Generator = torch.Generator | np.random.Generator


def rng_state(own: Mapping[str, Generator], seed: int, step: int) -> dict[str, Any]:
    """The states of NumPy's and torch's global generators (all CUDA devices and MPS included), and of `own`.

    Python's is the one that `begin_step` sets.

    The global ones count although RC1 draws from its own: the libraries below (dropout, TRL, PEFT) draw from them.

    Args:
        own: generators that are not global, by name.
        seed: of the run.
        step: finished steps.
    """
    states: dict[str, Any] = {
        "python": _python(seed, step).getstate(),
        "numpy": np.random.get_state(legacy=False),
        "torch": torch.get_rng_state(),
        "own": {name: _state(generator) for name, generator in own.items()},
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def seed_rng(seed: int) -> None:
    """Seed Python's, NumPy's and torch's global generators.

    A process begins with random ones, and they go into every checkpoint: without this, equal runs would end with
    unequal bytes.
    """
    begin_step(seed, 0)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def begin_step(seed: int, step: int) -> None:
    """Set Python's global generator to the state that belongs to this step of this run.

    It is the one that other threads of a process draw from too (those of Prefect's client, for their waits between
    attempts): carried over from step to step, it would say how long a step took, and equal runs would be unequal.

    Args:
        seed: of the run.
        step: finished steps.
    """
    random.setstate(_python(seed, step).getstate())


def restore_rng(states: Mapping[str, Any], own: Mapping[str, Generator]) -> None:
    """Put back what `rng_state` took. States of devices that this machine lacks have nothing to act on and are left.

    Raises:
        KeyError: when `own` names a generator that was not saved.
    """
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])
    for name, generator in own.items():
        _set(generator, states["own"][name])


def _python(seed: int, step: int) -> random.Random:
    return random.Random(f"{seed}/{step}")


def _state(generator: Generator) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    return generator.bit_generator.state


def _set(generator: Generator, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
