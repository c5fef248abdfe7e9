"""Compare an exported folder with the environment that would be exported now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.extras.worlds.package import world_package
from rc1_lib.extras.worlds.spec import MANIFEST, OWN, Part, read_manifest
from rc1_lib.run import Run
from rc1_lib.workspace.input_files import read_regular

_NOTHING = "nothing"
_NEVER_IMPORTED = ("__pycache__", ".venv")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        where: a key of the manifest, or a file of the folder.
        found: its value in the folder.
        here: the value that would be written now.
    """

    where: str
    found: str
    here: str

    def __str__(self) -> str:
        """Describe it as a sentence."""
        return f"{self.where}: the folder has {self.found}, an export now would have {self.here}"


def named_pool(run: Run, folder: Path) -> Path:
    """Return the pool that the manifest in `folder` names.

    Raises:
        RC1Error: if it names none, or that does not exist.
    """
    named = read_manifest(folder)[OWN].get("pool")
    name = named.get("path") if isinstance(named, dict) else None
    if not isinstance(name, str) or not name:
        raise RC1Error(
            f"{folder / MANIFEST}: {OWN}.pool.path is missing, expected the pool's path; give it with --rows"
        )
    pool = run.workspace.path(name)
    if not pool.is_file():
        raise RC1Error(
            f"{folder / MANIFEST}: {OWN}.pool.path is {name}, which does not exist; give the pool with --rows"
        )
    return pool


def differences(run: Run, folder: Path, pool: Path) -> list[Difference]:
    """List the differences between `folder` and what `run` would write from `pool`.

    Extra files such as a lock file do not count. Extra modules and folders do, because the server would import them.

    Raises:
        RC1Error: if the folder has no manifest of an environment, or inputs of the export are missing.
    """
    found = read_manifest(folder)
    here, contents = world_package(run, pool, _part(found, folder))
    files = _in_files(folder, {name: one for name, one in contents.items() if name != MANIFEST})
    return [*_in_manifest(found, here), *files, *_extra_modules(folder, contents)]


def _part(document: dict[str, Any], folder: Path) -> Part:
    rows = document[OWN].get("rows")
    part = rows.get("part") if isinstance(rows, dict) else None
    if not isinstance(part, str) or part not in [*Part]:
        raise RC1Error(f"{folder / MANIFEST}: {OWN}.rows.part is {part!r}, expected one of {', '.join(Part)}")
    return Part(part)


def _in_manifest(found: Any, here: Any, where: str = "") -> Iterator[Difference]:
    if isinstance(found, dict) and isinstance(here, dict):
        for key in {**here, **found}:
            below = f"{where}.{key}" if where else str(key)
            yield from _in_manifest(found.get(key, _NOTHING), here.get(key, _NOTHING), below)
    elif found != here or type(found) is not type(here):
        yield Difference(f"{MANIFEST}, {where}", str(found), str(here))


def _in_files(folder: Path, contents: dict[str, bytes]) -> Iterator[Difference]:
    for name, here in contents.items():
        try:
            found = read_regular(folder / name)
        except OSError as error:
            yield Difference(name, f"no such file ({error.strerror})", f"{len(here):,} bytes")
            continue
        if found != here:
            yield Difference(name, f"{len(found):,} other bytes", f"{len(here):,} bytes")


def _extra_modules(folder: Path, contents: Iterable[str]) -> Iterator[Difference]:
    own = {*contents, *(str(parent) for name in contents for parent in PurePosixPath(name).parents)}
    for below in sorted(path for path in map(folder.joinpath, own) if path.is_dir()):
        for entry in sorted(below.iterdir()):
            name = entry.relative_to(folder).as_posix()
            if name in own or entry.name in _NEVER_IMPORTED:
                continue
            if entry.is_dir():
                yield Difference(name, "a folder", _NOTHING)
            elif entry.name.endswith(tuple(all_suffixes())):
                yield Difference(name, "a module", _NOTHING)
