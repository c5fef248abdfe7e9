"""Writes an error report and the failure package (debug bundle) of a run.

The package is one archive of logs, reports and configurations, with fingerprints of the data.

The data are not included: they are large, and a fingerprint is enough to see whether two people have the same file.
Nor are reports that hold dialogues or the terms of every row. The lists of rows at fault are: they quote a few words.
Secrets are replaced by `***` in every file.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.masking import conceal, conceal_bytes, conceal_tree, secrets
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace, atomic_write, now, write_json
from rc1_lib.workspace.file_hashes import sha256_file

if TYPE_CHECKING:
    from rc1_lib.run import Run

_LINES = 200
"""Lines of the log in an error report."""
FOLDER = "reports/rc1"
_TAKEN = ("logs", "reports", "configs")
_SUFFIXES_LEFT_OUT = (".tar", ".tgz", ".pem", ".key", ".tmp")
_DATA = ("data", "templates")
_OF_ROWS = re.compile(
    r"dialogues.*\.jsonl$|\.rows\.jsonl$|scores\.jsonl$|audit_rollouts_.*\.jsonl$|\.examples\.md$|\.html$"
)
"""Reports that hold dialogues, or the terms of every row; the page of `rc1 report` shows dialogues too."""


def write_failpack(of: Run | Workspace, also: Sequence[Path] = ()) -> Path:
    """Write `reports/rc1/FAIL_<time>.tgz` and return its path.

    Args:
        of: a run, or only its workspace when the configuration itself cannot be read.
        also: further small files to include, for example an invalid configuration.
    """
    place = of if isinstance(of, Workspace) else of.workspace
    hidden = secrets()
    taken = dict(_small_files(place))
    for path in (*also, *(() if isinstance(of, Workspace) else of.config_files)):
        if path.is_file() and not _private(path):
            taken.setdefault(f"configs/{path.name}", path)
    target = stamped(place.path(FOLDER), "FAIL", ".tgz")
    listing = {"written": now(), "files": sorted(taken), "data": list(_fingerprints(place))}
    with atomic_write(target) as stream, tarfile.open(fileobj=stream, mode="w:gz") as archive:
        # json escapes a file name that is not UTF-8
        _add(archive, "FINGERPRINTS.json", json.dumps(listing, indent=2).encode(), hidden)
        for name, path in sorted(taken.items()):
            _add(archive, name, path.read_bytes(), hidden)
    return target


def write_error(place: Workspace, error: BaseException, log: Path) -> Path:
    """Write `reports/ERROR_<time>.json`: message, trace and last lines of the log, without secrets; return its path.

    Args:
        log: its last 200 lines are reported, if it exists.
    """
    path = stamped(place.path("reports"), "ERROR", ".json")
    body = {
        "time": now(),
        "message": str(error) or type(error).__name__,
        "kind": type(error).__name__,
        "trace": "".join(traceback.format_exception(error)).splitlines(),
        "log": log.name,
        "last_lines": _last_lines(log) if log.is_file() else [],
    }
    write_json(path, conceal_tree(body, secrets()))
    return path


def stamped(folder: Path, head: str, suffix: str) -> Path:
    """`folder/head_<UTC time>suffix`, numbered if a file of this second exists."""
    name = f"{head}_{datetime.now(UTC):%Y%m%d_%H%M%S}"
    path, number = folder / f"{name}{suffix}", 2
    while path.exists():
        path, number = folder / f"{name}_{number}{suffix}", number + 1
    return path


def _small_files(place: Workspace) -> Iterator[tuple[str, Path]]:
    """Archive name and path of everything below logs, reports and configs; the workspace's files come last and so win.

    Of the project only shipped files are included: other files in its configs belong to runs in other workspaces.
    """
    for base in {PROJECT_ROOT: None, place.root: None}:
        for folder in _TAKEN if base == place.root else ("configs",):
            for path in sorted((base / folder).rglob("*" if base == place.root else "*.yaml")):
                if path.is_file() and not path.is_symlink() and not _private(path.relative_to(base)):
                    yield path.relative_to(base).as_posix(), path


def _private(path: Path) -> bool:
    """Whether a file must not go into a package: hidden files (`.env`), keys, dialogues, rows and other packages."""
    named_env = path.name == "env" or path.suffix == ".env"
    return (
        named_env
        or _OF_ROWS.search(path.name) is not None
        or path.suffix in _SUFFIXES_LEFT_OUT
        or any(part.startswith(".") for part in path.parts if part != "..")
    )


def _fingerprints(place: Workspace) -> Iterator[dict[str, Any]]:
    for folder in _DATA:
        for path in sorted(place.path(folder).rglob("*")):
            if path.is_file():
                yield {"path": place.name(path), "bytes": path.stat().st_size, "sha256": sha256_file(path)}


def _add(archive: tarfile.TarFile, name: str, content: bytes, hidden: Sequence[str]) -> None:
    clean = conceal_bytes(content, hidden)
    entry = tarfile.TarInfo(conceal(name, hidden))
    entry.size, entry.mode, entry.mtime = len(clean), 0o644, int(datetime.now(UTC).timestamp())
    archive.addfile(entry, io.BytesIO(clean))


def _last_lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]
