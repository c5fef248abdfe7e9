"""The workspace: where files lie, atomic writes, SHA-256 fingerprints, and manifests that tell who wrote a file.

Writing is two-phase so that a kill at any moment can be told apart from an alteration: the manifest with the new
file's SHA-256 *and* the old file's is renamed into place first, the data file second. A data file that still has the
old SHA-256 was interrupted; one that has neither was altered.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import orjson

PROJECT_ROOT = Path(__file__).resolve().parents[1]


class FileState(StrEnum):
    """What the manifest says of a file."""

    MISSING = "missing"
    FRESH = "fresh"
    STALE = "stale"
    INTERRUPTED = "interrupted"
    FOREIGN = "foreign"
    ALTERED = "altered"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder below which a run writes everything. Inputs may also come from the project itself."""

    root: Path

    def path(self, relative: str) -> Path:
        """Where `relative` lies (or will be written) in this workspace."""
        return self.root / relative

    def find(self, relative: str) -> Path:
        """An input: the workspace's own copy when there is one, else the project's."""
        own = self.root / relative
        return own if own.exists() else PROJECT_ROOT / relative

    def name(self, path: Path) -> str:
        """`path` as it is written in reports: relative to the workspace or the project, never a machine's path."""
        for base in (self.root.resolve(), PROJECT_ROOT):
            if path.resolve().is_relative_to(base):
                return path.resolve().relative_to(base).as_posix()
        return path.name

    def manifest_path(self, relative: str) -> Path:
        """Where the manifest of the data file `relative` lies."""
        return self.root / "reports/rc1" / f"{Path(relative).stem}.manifest.json"


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    """SHA-256 of a JSON-ready value with sorted keys, in hex."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()


def sha256_tree(folder: Path, pattern: str = "*.json") -> str:
    """One SHA-256 over the names and bytes of all files in `folder` that match, in hex."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + sha256_file(path).encode() + b"\n")
    return digest.hexdigest()


@contextmanager
def atomic_write(path: Path, before_rename: Any = None) -> Iterator[IO[bytes]]:
    """A binary stream that becomes `path` in one rename, after fsync; on an error nothing is left behind.

    `before_rename(temporary: Path)` runs when the new bytes are safe on disk and the old file is still in place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        if before_rename is not None:
            before_rename(temporary)
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text atomically."""
    with atomic_write(path) as stream:
        stream.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    with atomic_write(path) as stream:
        stream.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        FileNotFoundError: when it is not there.
        ValueError: when it is not JSON.
    """
    return orjson.loads(path.read_bytes())


@contextmanager
def recorded_write(workspace: Workspace, relative: str, manifest: Mapping[str, Any]) -> Iterator[IO[bytes]]:
    """Write a data file, its manifest and its `.sha256`, so that `file_state` can tell later what happened to it."""
    target = workspace.path(relative)
    for leftover in target.parent.glob(f".{target.name}.*.tmp"):
        # A writer that was killed left it. RC1 writes a workspace's files from one process at a time.
        leftover.unlink(missing_ok=True)
    previous = sha256_file(target) if target.exists() else None
    body: dict[str, Any] = {}

    def record(temporary: Path) -> None:
        body.update(manifest)
        body.update(path=relative, sha256=sha256_file(temporary), previous_sha256=previous, written=now())
        write_json(workspace.manifest_path(relative), body)

    with atomic_write(target, before_rename=record) as stream:
        yield stream
    checksum = workspace.path(f"reports/rc1/{target.stem}.sha256")
    write_text(checksum, f"{body['sha256']}  {relative}\n")


def read_manifest(workspace: Workspace, relative: str) -> dict[str, Any] | None:
    """The manifest of a data file, or None when there is none or it is unreadable."""
    try:
        manifest = read_json(workspace.manifest_path(relative))
    except (FileNotFoundError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def file_state(workspace: Workspace, relative: str, inputs: Mapping[str, Any] | None = None) -> FileState:
    """What became of a data file since its manifest was written.

    Args:
        workspace: where to look.
        relative: the data file.
        inputs: what it would be made from today; when given and different from the manifest's, the file is STALE.
    """
    target = workspace.path(relative)
    manifest = read_manifest(workspace, relative)
    if not target.exists():
        return FileState.MISSING
    if manifest is None:
        return FileState.FOREIGN
    digest = sha256_file(target)
    if digest != manifest.get("sha256"):
        return FileState.INTERRUPTED if digest == manifest.get("previous_sha256") else FileState.ALTERED
    if inputs is not None and manifest.get("inputs") != inputs:
        return FileState.STALE
    return FileState.FRESH


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
