"""What of this process decides the last bit of a result: threads, the libraries' versions, global random numbers."""

from __future__ import annotations

import platform
import random
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

_LIBRARIES = ("torch", "transformers", "peft", "trl", "accelerate", "bitsandbytes")


def process_values() -> dict[str, Any]:
    """Threads and versions, as JSON for a checkpoint."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {"threads": torch.get_num_threads(), "versions": {"python": platform.python_version(), **versions}}


def restore_process(saved: Mapping[str, Any]) -> list[str]:
    """Take over the saved number of threads, and say what else differs, a sentence each.

    Sums over another number of threads are rounded otherwise, so that a resumed run would not end with the same bytes.
    """
    here = process_values()
    shown = []
    if saved["threads"] != here["threads"]:
        torch.set_num_threads(saved["threads"])
        shown.append(
            f"threads: {here['threads']} here, {saved['threads']} in the checkpoint: taken from the checkpoint"
        )
    for name, old in saved["versions"].items():
        new = here["versions"].get(name)
        if new != old:
            shown.append(f"{name}: {new} here, {old} in the checkpoint: the last bits of the result may differ")
    return shown


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
