"""The identity of the code: the fingerprint of the project's source, and the installed package.

The fingerprint binds evidence to the code that produced it. It covers the rooms that make a thing and the libraries
that compute it: any change there makes it out of date. What only shows, asks or packs is recorded with it, by commit or
package, and reported. It does not protect against people who can edit the code, since they can edit the fingerprint's
computation too.

Without a checkout the installed package identifies the code. Git is not asked then, because it would report whatever
repository happens to contain the environment.
"""

from __future__ import annotations

import hashlib
import os
import platform
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Literal

from rc1_lib.runtime.libraries import TRAINING
from rc1_lib.workspace.artifacts import CODE_ROOT
from rc1_lib.workspace.file_hashes import sha256_file

Made = Literal["data", "training", "ticket"]
"""What is made: the data and the calibration; a warm start, checkpoints and policies; the verdicts of a ticket."""
_ALL = (
    "answer_rules", "calibration", "checks.py", "config", "environment", "judge", "numbers", "records.py", "reward",
    "rows", "runtime", "task_specs", "text", "workspace",
)  # fmt: skip
_DATA = (*_ALL, "attacks", "difficulty", "labels", "pool", "sources")
_TRAINING = (*_ALL, "training")
_JUDGES = (
    "evaluation", "evidence.py", "forecast", "gate_report.py", "gates", "preflight", "provenance", "run.py", "scale_up",
    "vouched.py",
)  # fmt: skip
_ROOMS: Mapping[Made, tuple[str, ...]] = {
    "data": tuple(f"rc1_lib/{room}" for room in _DATA),
    "training": tuple(f"rc1_lib/{room}" for room in _TRAINING),
    "ticket": (*(f"rc1_lib/{room}" for room in {*_DATA, *_TRAINING, *_JUDGES}), "flows", "tasks"),
}
_COMPUTE = ("numpy", "polars", "scipy")
_LIBRARIES: Mapping[Made, tuple[str, ...]] = {
    "data": (*_COMPUTE, "rensa"),
    "training": (*_COMPUTE, *TRAINING),
    "ticket": (*_COMPUTE, "pandera", "pydantic", "rensa", *TRAINING),
}
"""Libraries whose versions affect measured values or learned weights as much as our own source does."""


@cache
def code_sha256(made: Made = "ticket") -> str:
    """Return the SHA-256 of the code that makes something: its rooms, its libraries, and Python's minor version.

    The files are read once per process, since the code that runs is the code that was imported.
    """
    digest = hashlib.sha256(".".join(platform.python_version_tuple()[:2]).encode())
    for library in sorted(_LIBRARIES[made]):
        digest.update(f"{library}=={_version(library)}\n".encode())
    for path in source_files(made):
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


def source_files(made: Made) -> list[Path]:
    """Return every file of the rooms that make something, sorted, except hidden ones and those in `__pycache__`."""
    return sorted(path for room in _ROOMS[made] for path in _below(CODE_ROOT / room))


def _below(room: Path) -> Iterator[Path]:
    if room.is_file():
        yield room
    for folder, inner, files in os.walk(room, followlinks=True):
        inner[:] = [name for name in inner if name != "__pycache__" and not name.startswith(".")]
        yield from (Path(folder, name) for name in files if not name.startswith("."))


_DISTRIBUTION = "rc1"
_INSTALLED_PACKAGES = ("rc1_lib", "tasks", "flows", "deployments")


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
