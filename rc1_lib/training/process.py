"""What in this process affects the last bits of a result: threads, library versions, global random generators."""

from __future__ import annotations

import os
import platform
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from types import FrameType
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
    """Return the states of NumPy's and torch's global generators, including those of the current GPU.

    RC1 draws from its own generators, but the libraries (dropout, TRL, PEFT) draw from these. Python's generator is not
    included, because `begin_step` sets it.
    """
    numpy = np.random.get_state(legacy=False)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    states: dict[str, Any] = {"numpy": numpy, "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
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
        first, *_ = states["cuda"] if isinstance(states["cuda"], list) else [states["cuda"]]  # once: of every GPU
        torch.cuda.set_rng_state(first)
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])


# SIGTERM in a training, as a scheduler sends it: the step ends and has a checkpoint before the signal takes effect.

REASON = "stopped (SIGTERM)"


@contextmanager
def after_the_step(grace_s: float, stop: Callable[[str], None]) -> Iterator[None]:
    """Hold SIGTERM back in the block; `stop` then has to end the block, and at its end the signal takes effect.

    A second signal takes effect at once, as does the first one when the grace period is over.

    Args:
        grace_s: seconds that the block has left after the signal; 0: the signal is not held back.
        stop: called with the reason.
    """
    if grace_s == 0 or threading.current_thread() is not threading.main_thread():  # only that one may handle signals
        yield
        return
    process, came = os.getpid(), False
    over = threading.Timer(grace_s, os.kill, (process, signal.SIGTERM))
    over.daemon = True

    def hold(number: int, _: FrameType | None) -> None:
        nonlocal came
        if came or os.getpid() != process:  # a forked worker ends
            take_effect(number)
        came = True
        words = f"finishes this step and writes a checkpoint, for at most {grace_s:g} s; a second one ends it at once"
        os.write(2, f"\nrc1: SIGTERM: {words}\n".encode())
        over.start()
        stop(REASON)

    def take_effect(number: int) -> None:
        signal.signal(number, signal.SIG_DFL if before is None else before)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, hold)
    try:
        yield
        over.cancel()
        if came:
            take_effect(signal.SIGTERM)
    finally:
        over.cancel()
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
