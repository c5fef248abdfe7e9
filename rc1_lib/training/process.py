"""What of this process decides the last bit of a result: the number of threads and the libraries' versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

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
