"""The installed package: its version, and whether its files are those that were installed.

It names the code where there is no checkout. Git is not asked there: it would answer for whatever repository the
environment happens to lie in.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from rc1_lib.workspace.artifacts import CODE_ROOT
from rc1_lib.workspace.file_hashes import sha256_file

_NAME = "rc1"
_PACKAGES = ("rc1_lib", "rc1_world", "tasks", "flows", "deployments")


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
    found = (path for name in _PACKAGES for path in (root / name).rglob("*") if "__pycache__" not in path.parts)
    return sorted(path for path in found if path.is_file())


def _recorded(root: Path) -> tuple[str | None, dict[str, str]]:
    """The version, and the SHA-256 of every file, as the record has them."""
    for one in distributions(name=_NAME, path=[str(root)]):
        files = [path for path in one.files or () if path.parts[0] in _PACKAGES and "__pycache__" not in path.parts]
        if files:
            return one.version, {path.as_posix(): path.hash.value if path.hash else "" for path in files}
    return None, {}


def _as_recorded(sha256: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()
