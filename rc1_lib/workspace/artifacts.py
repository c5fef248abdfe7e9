"""The workspace: paths, atomic writes, SHA-256 fingerprints, and manifests that show whether RC1 wrote a file.

Writing has two phases, so that a kill at any moment can be distinguished from an alteration: first the manifest, with
the SHA-256 of the new *and* of the old file, is renamed into place, then the data file. If a data file still has the
old SHA-256, writing was interrupted; if it has neither, it was altered.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import orjson

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.file_hashes import sha256_file, sha256_known
from rc1_lib.workspace.input_files import is_hidden, read_regular

CODE_ROOT = Path(__file__).resolve().parents[2]
"""The folder of the packages: a checkout's root, or where a wheel was installed."""
_PACKAGED = CODE_ROOT / "rc1_lib/_project"
INSTALLED = _PACKAGED.is_dir()
"""Whether this is an installed wheel, which contains (`setup.py`) what a checkout has next to its packages."""
PROJECT_ROOT = _PACKAGED if INSTALLED else CODE_ROOT
"""The folder of the shipped files: configurations, templates, the bundled tiny model."""
_MARKS = ("configs/ppo_scale.yaml", "reports/rc1")
"""Either marks a folder as a workspace: the file that every other configuration extends, which a checkout has and
`rc1 init` copies, or the folder of the manifests, which RC1 creates wherever it writes data."""
_LOCK = "reports/rc1/.write.lock"


class FileState(StrEnum):
    """The state of a file according to its manifest."""

    MISSING = "missing"
    FRESH = "fresh"
    STALE = "stale"
    INTERRUPTED = "interrupted"
    FOREIGN = "foreign"
    ALTERED = "altered"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder for everything that a run writes. Inputs may also come from the project."""

    root: Path

    def path(self, relative: str) -> Path:
        """Return the path of `relative` in this workspace, whether or not it exists."""
        return self.root / relative

    def find(self, relative: str) -> Path:
        """Return the path of an input: the workspace's copy if there is one, else the project's."""
        own = self.root / relative
        return own if own.exists() else PROJECT_ROOT / relative

    def name(self, path: Path) -> str:
        """Return `path` as reports show it: relative to the workspace or the project, never absolute."""
        # For a circular link Path.resolve() would raise an error that is not an OSError.
        real = Path(os.path.realpath(path))
        for base in (self.root.resolve(), PROJECT_ROOT):
            if real.is_relative_to(base):
                return real.relative_to(base).as_posix()
        # In a folder that is linked to another disk
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name

    def manifest_path(self, relative: str) -> Path:
        """Return the path of the manifest of the data file `relative`."""
        return self.root / "reports/rc1" / f"{Path(relative).stem}.manifest.json"

    def checksum_path(self, relative: str) -> Path:
        """Return the path of the checksum of the data file `relative`, in the format of `sha256sum -c`."""
        return self.root / "reports/rc1" / f"{Path(relative).stem}.sha256"


def is_workspace(folder: Path) -> bool:
    """Return whether a folder is a checkout, was prepared by `rc1 init`, or has data that RC1 wrote."""
    return any((folder / mark).exists() for mark in _MARKS)


def default_root() -> Path:
    """Return the default workspace: the current folder.

    Raises:
        RC1Error: when it is not a workspace, since RC1 writes only into folders that the user chose.
    """
    here = Path.cwd().resolve()
    if not is_workspace(here):
        raise RC1Error(
            f"{here}: is not a workspace (it has neither {' nor '.join(_MARKS)}); name a folder with --workspace, or "
            f"go into a workspace; `rc1 init DIR` prepares one"
        )
    return here


def now() -> str:
    """Return the current UTC time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sha256_json(value: Any) -> str:
    """Return the SHA-256 of a JSON-ready value with sorted keys, in hex."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()


def sha256_tree(folder: Path, pattern: str = "*.json") -> str:
    """Return one SHA-256 over the names and bytes of all files in `folder` that match and are not hidden, in hex.

    Raises:
        RC1Error: when a folder matches the pattern for files.
    """
    return sha256_files(folder, (path for path in folder.rglob(pattern) if not is_hidden(path, folder)))


def sha256_folder(folder: Path) -> str:
    """Return one SHA-256 over the names and bytes of all files in `folder` and below, in hex.

    Raises:
        RC1Error: when it contains a link to a folder, whose files would not be covered.
    """
    found = sorted(folder.rglob("*"))
    linked = next((path for path in found if path.is_symlink() and path.is_dir()), None)
    if linked is not None:
        raise RC1Error(
            f"{linked}: is a link to a folder, whose files no fingerprint would cover; replace it with a copy of the "
            f"folder"
        )
    return sha256_files(folder, (path for path in found if not path.is_dir()))


def sha256_files(folder: Path, files: Iterable[Path]) -> str:
    """Return one SHA-256 over the names and bytes of these files below `folder`, in hex."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + sha256_known(path).encode() + b"\n")
    return digest.hexdigest()


@contextmanager
def atomic_write(path: Path, before_rename: Any = None, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Yield a binary stream that becomes `path` in one rename after fsync; an error leaves nothing.

    The umask takes its part of `mode`, as of any new file.
    `before_rename(temporary: Path)` runs when the new bytes are on disk and the old file is still in place.
    """
    make_folder(path.parent)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with _naming(path), os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if before_rename is not None:
            before_rename(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file's name to an error about a full disk, since a stream does not know it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


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
        FileNotFoundError: when it does not exist.
        ValueError: when it is not JSON, or nested too deeply to be written again.
    """
    value = orjson.loads(read_regular(path))
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return value


@contextmanager
def in_form(path: Path) -> Iterator[None]:
    """Name the file in an error about a key or a value that it lacks.

    Args:
        path: the file whose content the block reads.

    Raises:
        RC1Error: when the block finds another form than the file has.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise RC1Error(
            f"{path}: does not have the form that this version of RC1 writes: {what}; write it again or move it away"
        ) from error


@contextmanager
def recorded_write(workspace: Workspace, relative: str, manifest: Mapping[str, Any]) -> Iterator[IO[bytes]]:
    """Write a data file, its manifest and its `.sha256`, from which `file_state` later finds out what happened to it.

    Args:
        manifest: the content of the manifest: `inputs`, `kind`, and further facts. It is read after the data are
            written.

    Raises:
        RC1Error: when another process is writing into this workspace, or the file's name is taken.
    """
    target = workspace.path(relative)
    with _writing(workspace, relative):
        _check_name(workspace, relative)
        for leftover in target.parent.glob(f".{target.name}.*.tmp"):
            leftover.unlink(missing_ok=True)  # left by a killed writer; no other writer is alive
        previous = sha256_file(target) if target.exists() else None
        body: dict[str, Any] = {}

        def record(temporary: Path) -> None:
            body.update(manifest)
            body.update(path=relative, sha256=sha256_file(temporary), previous_sha256=previous, written=now())
            write_json(workspace.manifest_path(relative), body)

        with atomic_write(target, before_rename=record) as stream:
            yield stream
        write_text(workspace.checksum_path(relative), checksum_line(body["sha256"], relative))


@contextmanager
def _writing(workspace: Workspace, relative: str) -> Iterator[None]:
    """Hold the exclusive right to write data files into the workspace."""
    path = workspace.path(_LOCK)
    busy = f"another process is writing into this workspace and holds {_LOCK}; wait for it to finish, or stop it"
    make_folder(path.parent)
    with only_writer(path, RC1Error(f"{workspace.path(relative)}: {busy}")):
        yield


@contextmanager
def only_writer(lock: Path, refusal: RC1Error) -> Iterator[None]:
    """Hold a lock file, which the kernel releases even if the process is killed.

    Args:
        lock: the file, in an existing folder.
        refusal: the error to raise while another process holds it.
    """
    from filelock import FileLock, Timeout  # not needed by commands that only read

    held = FileLock(lock)
    try:
        held.acquire(blocking=False)
    except Timeout:
        raise refusal from None
    try:
        yield
    finally:
        held.release()


def _check_name(workspace: Workspace, relative: str) -> None:
    """Raise if the manifest of another existing file would be overwritten."""
    other = (read_manifest(workspace, relative) or {}).get("path")
    if isinstance(other, str) and Path(other) != Path(relative) and workspace.path(other).exists():
        raise RC1Error(
            f"{workspace.path(relative)}: reports/rc1 already describes {other} under this file name; "
            f"give the new file another name, or move the other one away"
        )


def checksum_line(sha256: str, relative: str) -> str:
    """Return the content of a data file's checksum file, in the format of sha256sum."""
    return f"{sha256}  {relative}\n"


def write_checksum(workspace: Workspace, relative: str) -> None:
    """Write `reports/rc1/NAME.sha256` of a report or a configuration; data files have theirs from `recorded_write`."""
    digest = sha256_file(workspace.path(relative))
    write_text(workspace.checksum_path(relative), checksum_line(digest, relative))


def has_checksum(workspace: Workspace, relative: str) -> bool:
    """Return whether a file has a checksum, which is that of its bytes."""
    return _names(workspace.checksum_path(relative), sha256_known(workspace.path(relative)), relative)


def read_manifest(workspace: Workspace, relative: str) -> dict[str, Any] | None:
    """Return the manifest of a data file, or None if it is missing or unreadable."""
    try:
        manifest = read_json(workspace.manifest_path(relative))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def file_state(
    workspace: Workspace, relative: str, inputs: Mapping[str, Any] | None = None, kind: str | None = None
) -> FileState:
    """Compare a data file with its manifest, and return its state.

    Args:
        inputs: its current inputs; if given and different from the manifest's, the file is STALE.
        kind: the expected kind; if given and different from the manifest's, the file is FOREIGN.
    """
    target = workspace.path(relative)
    manifest = read_manifest(workspace, relative)
    if not target.exists():
        return FileState.MISSING
    if manifest is None or Path(str(manifest.get("path"))) != Path(relative):
        return FileState.FOREIGN
    if kind is not None and manifest.get("kind") != kind:
        return FileState.FOREIGN
    digest = sha256_known(target)
    if digest != manifest.get("sha256"):
        return FileState.INTERRUPTED if digest == manifest.get("previous_sha256") else FileState.ALTERED
    if inputs is not None and manifest.get("inputs") != inputs:
        return FileState.STALE
    # Killed between writing the data file and its checksum.
    return FileState.FRESH if _names(workspace.checksum_path(relative), digest, relative) else FileState.STALE


def _names(checksum: Path, sha256: str, relative: str) -> bool:
    try:
        return read_regular(checksum) == checksum_line(sha256, relative).encode()
    except OSError:
        return False


def make_folder(folder: Path, error: type[RC1Error] = RC1Error) -> None:
    """Create a folder and its missing parents.

    Raises:
        RC1Error: of class `error`, when a file is in the way.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise error(f"{folder}: cannot create this folder, because a file of that name is in the way") from None


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
