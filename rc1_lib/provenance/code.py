"""Which code this is: the fingerprint of the project's own source, and the installed package.

The fingerprint binds evidence to the code that produced it. It covers every file of the packages: any change makes what
was derived before out of date. It stops nobody who can write the code: whoever can do that also changes what takes the
fingerprint.

The installed package names the code where there is no checkout. Git is not asked there: it would answer for whatever
repository the environment happens to lie in.
"""

from __future__ import annotations

import hashlib
import os
import platform
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from rc1_lib.runtime.libraries import TRAINING
from rc1_lib.workspace.artifacts import CODE_ROOT, PROJECT_ROOT
from rc1_lib.workspace.file_hashes import sha256_file

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


_DISTRIBUTION = "rc1"
_INSTALLED_PACKAGES = ("rc1_lib", "rc1_world", "tasks", "flows", "deployments")


@dataclass(frozen=True, slots=True)
class PackageState:
    """What an installation records of RC1, and what lies there.

    Attributes:
        version: None where nothing is recorded.
        sha256: of the names and bytes of all its files as they lie there.
        changed: files that are not as they were installed, each after a letter as git's: altered, deleted, added.
    """

    version: str | None
    sha256: str
    changed: tuple[str, ...]

    def facts(self) -> dict[str, str | None]:
        """What a ticket names, and its check compares."""
        return {"version": self.version, "sha256": self.sha256}


def read_package(root: Path = CODE_ROOT) -> PackageState:
    """Compare the files of an installation with what it records of them (`RECORD`).

    Args:
        root: where the packages and the record lie.
    """
    there = {path.relative_to(root).as_posix(): sha256_file(path) for path in _files(root)}
    lines = (f"{name}\0{sha256}\n" for name, sha256 in sorted(there.items()))
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    version, recorded = _recorded(root)
    changed = [
        *(f" M {name}" for name in there.keys() & recorded.keys() if _as_recorded(there[name]) != recorded[name]),
        *(f" D {name}" for name in recorded.keys() - there.keys()),
        *(f"?? {name}" for name in there.keys() - recorded.keys()),
    ]
    return PackageState(version, digest, tuple(sorted(changed)))


def _files(root: Path) -> list[Path]:
    found = (
        path for name in _INSTALLED_PACKAGES for path in (root / name).rglob("*") if "__pycache__" not in path.parts
    )
    return sorted(path for path in found if path.is_file())


def _recorded(root: Path) -> tuple[str | None, dict[str, str]]:
    """The version, and the SHA-256 of every file, as the record has them."""
    for one in distributions(name=_DISTRIBUTION, path=[str(root)]):
        files = [
            path for path in one.files or () if path.parts[0] in _INSTALLED_PACKAGES and "__pycache__" not in path.parts
        ]
        if files:
            return one.version, {path.as_posix(): path.hash.value if path.hash else "" for path in files}
    return None, {}


def _as_recorded(sha256: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()
