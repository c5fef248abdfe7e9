"""What in this process affects the last bits of a result: threads, library versions, global random generators."""

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
    """Return threads and versions as JSON values for a checkpoint."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {"threads": torch.get_num_threads(), "versions": {"python": platform.python_version(), **versions}}


def restore_process(saved: Mapping[str, Any]) -> list[str]:
    """Restore the saved number of threads. Return a sentence for it and for every library whose version differs.

    Another number of threads rounds sums differently, so a resumed run would not end with the same bytes.
    """
    here = process_values()
    shown = []
    if saved["threads"] != here["threads"]:
        torch.set_num_threads(saved["threads"])
        shown.append(f"threads: set from {here['threads']} to the checkpoint's {saved['threads']}")
    for name, old in saved["versions"].items():
        new = here["versions"].get(name)
        if new != old:
            shown.append(f"{name}: {new} here, {old} in the checkpoint; the last bits of the result may differ")
    return shown


def rng_state() -> dict[str, Any]:
    """Return the states of NumPy's and torch's global generators, including those of CUDA and MPS.

    RC1 draws from its own generators, but the libraries (dropout, TRL, PEFT) draw from these. Python's generator is not
    included, because `begin_step` sets it.
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
    """Seed the global generators of Python, NumPy and torch.

    Their states go into every checkpoint. Without a seed, equal runs would end with different bytes.
    """
    begin_step(seed, 0)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def begin_step(seed: int, step: int) -> None:
    """Set Python's global generator to a state that depends only on seed and step.

    Other threads draw from it too, such as Prefect's client for its waits between retries. If it carried over from step
    to step, its state would depend on how long a step took, and equal runs would differ.

    Args:
        step: number of finished steps.
    """
    random.seed(f"{seed}/{step}")


def restore_rng(states: Mapping[str, Any]) -> None:
    """Restore what `rng_state` returned, except for devices that this machine lacks."""
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])
