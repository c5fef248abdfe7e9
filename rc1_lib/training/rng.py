"""The global random number generators of this process, as a state that a checkpoint can hold."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """The states of NumPy's and torch's global generators, all CUDA devices and MPS included.

    They count although RC1 draws from its own: the libraries below (dropout, TRL, PEFT) draw from them. Python's is
    not among them, since `begin_step` sets it.
    """
    numpy = np.random.get_state(legacy=False)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    states: dict[str, Any] = {"numpy": numpy, "torch": torch.get_rng_state()}
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

    Other threads of a process draw from it too (those of Prefect's client, for their waits between attempts): carried
    over from step to step, it would depend on how long a step took, and equal runs would be unequal.

    Args:
        seed: of the run.
        step: finished steps.
    """
    random.seed(f"{seed}/{step}")


def restore_rng(states: Mapping[str, Any]) -> None:
    """Put back what `rng_state` took. States of devices that this machine lacks are left out."""
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])
