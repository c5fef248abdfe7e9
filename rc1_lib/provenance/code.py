"""The fingerprint of the project's own source, so that evidence is bound to the code that produced it.

It covers every file of the packages: any change makes what was derived before out of date. It stops nobody who can
write the code: whoever can do that also changes what takes the fingerprint.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rc1_lib.runtime.extras import TRAINING
from rc1_lib.workspace.artifacts import CODE_ROOT, PROJECT_ROOT

PACKAGES = ("rc1_lib", "tasks", "flows", "deployments")
_LIBRARIES = ("daqp", "numpy", "pandera", "polars", "pydantic", "rensa", "scipy", *TRAINING)
"""Whose versions decide a measured value or a learned weight as much as our own source does."""


@cache
def code_sha256() -> str:
    """SHA-256 over all source and data files of `PACKAGES`, and the versions of Python and of the libraries.

    Read once per process: the code that runs is the code that was imported.
    """
    digest = hashlib.sha256(platform.python_version().encode())
    for library in sorted(_LIBRARIES):
        digest.update(f"{library}=={_version(library)}\n".encode())
    for path in source_files():
        name, content = path.relative_to(CODE_ROOT).as_posix(), hashlib.sha256(path.read_bytes())
        digest.update(f"{name}\0{content.hexdigest()}\n".encode())
    return digest.hexdigest()


def _version(library: str) -> str:
    """The version that is installed; of what only training needs, also that none is."""
    try:
        return version(library)
    except PackageNotFoundError:
        if library in TRAINING:
            return "not installed"
        raise


def source_files() -> list[Path]:
    """Every file of `PACKAGES`, sorted, but for hidden ones and what Python compiles into `__pycache__`.

    Of a wheel also without what a checkout has next to its packages, so that both have one fingerprint.
    """
    return sorted(path for package in PACKAGES for path in _below(CODE_ROOT / package))


def _below(package: Path) -> Iterator[Path]:
    for folder, inner, files in os.walk(package, followlinks=True):
        inner[:] = [
            name
            for name in inner
            if name != "__pycache__" and not name.startswith(".") and Path(folder, name) != PROJECT_ROOT
        ]
        yield from (Path(folder, name) for name in files if not name.startswith("."))
