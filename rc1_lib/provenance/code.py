"""The identity of the code: the fingerprint of the project's source, and the installed package.

The fingerprint binds evidence to the code that produced it. It covers every file of the packages, so that any change
makes derived files out of date. It does not protect against people who can edit the code, since they can edit the
fingerprint's computation too.

Without a checkout the installed package identifies the code. Git is not asked then, because it would report whatever
repository happens to contain the environment.
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
_LIBRARIES = ("numpy", "pandera", "polars", "pydantic", "rensa", "scipy", *TRAINING)
"""Libraries whose versions affect measured values or learned weights as much as our own source does."""


@cache
def code_sha256() -> str:
    """Return the SHA-256 over all files of `PACKAGES`, and the versions of Python and of the libraries.

    The files are read once per process, since the code that runs is the code that was imported.
    """
    digest = hashlib.sha256(platform.python_version().encode())
    for library in sorted(_LIBRARIES):
        digest.update(f"{library}=={_version(library)}\n".encode())
    for path in source_files():
        name, content = path.relative_to(CODE_ROOT).as_posix(), hashlib.sha256(path.read_bytes())
        digest.update(f"{name}\0{content.hexdigest()}\n".encode())
    return digest.hexdigest()


def _version(library: str) -> str:
    """Return the installed version, or "not installed" for a library that only training needs."""
    try:
        return version(library)
    except PackageNotFoundError:
        if library in TRAINING:
            return "not installed"
        raise


def source_files() -> list[Path]:
    """Return every file of `PACKAGES`, sorted, except hidden ones and those in `__pycache__`.

    For a wheel, what a checkout has next to its packages is left out too, so that both have the same fingerprint.
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
    """The installed package of RC1, compared with what the installation recorded.

    Attributes:
        version: the recorded version; None if there is no record.
        sha256: SHA-256 over the names and bytes of all its current files.
        changed: files that differ from the record, each after a letter like git's: altered, deleted, added.
    """

    version: str | None
    sha256: str
    changed: tuple[str, ...]

    def facts(self) -> dict[str, str | None]:
        """Return the entry for a ticket, which its verification compares."""
        return {"version": self.version, "sha256": self.sha256}


def read_package(root: Path = CODE_ROOT) -> PackageState:
    """Compare the files of an installation with its `RECORD`.

    Args:
        root: the folder of the packages and the record.
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
    """Return the recorded version, and path -> recorded SHA-256 of every file."""
    for one in distributions(name=_DISTRIBUTION, path=[str(root)]):
        files = [
            path for path in one.files or () if path.parts[0] in _INSTALLED_PACKAGES and "__pycache__" not in path.parts
        ]
        if files:
            return one.version, {path.as_posix(): path.hash.value if path.hash else "" for path in files}
    return None, {}


def _as_recorded(sha256: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()
