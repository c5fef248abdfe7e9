"""A fingerprint of the project's own source, so that evidence is bound to the code that produced it."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from rc1_lib.artifacts import PROJECT_ROOT, sha256_file

PACKAGES = ("rc1_lib", "tasks", "flows", "deployments")
_LIBRARIES = (
    "accelerate", "bitsandbytes", "daqp", "numpy", "pandera", "peft", "polars", "pydantic", "rensa", "safetensors",
    "scipy", "tokenizers", "torch", "transformers", "trl",
)  # fmt: skip
"""Whose versions decide a measured value or a learned weight as much as our own source does."""


@cache
def code_sha256(*parts: str) -> str:
    """SHA-256 over the source below `parts` (all of `PACKAGES` when none is named) and the versions it runs on.

    Source is Python and, below `rc1_lib`, YAML: the words of the embedded questions decide a pool as its code does.

    Read once per process: the code that runs is the code that was imported.
    """
    digest = hashlib.sha256(platform.python_version().encode())
    for library in _LIBRARIES:
        digest.update(f"{library}=={version(library)}\n".encode())
    for part in parts or PACKAGES:
        place = PROJECT_ROOT / part
        files = [place] if place.is_file() else sorted(filter(_is_source, place.rglob("*")))
        if not files:
            raise FileNotFoundError(f"{part}: no source below the project's root; the code cannot be fingerprinted")
        for path in files:
            digest.update(f"{path.relative_to(PROJECT_ROOT).as_posix()}\0{sha256_file(path)}\n".encode())
    return digest.hexdigest()


def _is_source(path: Path) -> bool:
    return path.suffix == ".py" or (path.suffix == ".yaml" and path.is_relative_to(PROJECT_ROOT / "rc1_lib"))
