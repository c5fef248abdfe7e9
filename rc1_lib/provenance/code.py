"""Fingerprints of the project's own source, so that evidence is bound to the code that produced it.

Which code that is stands in no list: it is read from the imports, those inside functions included, beginning at the
module that does the work. What is imported by a name put together at run time cannot be seen there; whoever does so
names the package it lies in as another root.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from rc1_lib.provenance.bytecode import check_bytecode, check_importable
from rc1_lib.workspace.artifacts import PROJECT_ROOT

PACKAGES = ("rc1_lib", "tasks", "flows", "deployments")
_LIBRARIES = (
    "accelerate", "bitsandbytes", "daqp", "numpy", "pandera", "peft", "polars", "pydantic", "rensa", "safetensors",
    "scipy", "tokenizers", "torch", "transformers", "trl",
)  # fmt: skip
"""Whose versions decide a measured value or a learned weight as much as our own source does."""


@cache
def code_sha256(*roots: str) -> str:
    """SHA-256 over all source that `roots` rest on, and the versions it runs on; over all of `PACKAGES` without roots.

    Read once per process: the code that runs is the code that was imported.

    Args:
        roots: modules, such as `rc1_lib.pool.seed`, or packages, of which every module counts.

    Raises:
        RC1Error: where Python would run something else than the source, or could import what is none.
    """
    for package in PACKAGES:
        check_importable(PROJECT_ROOT / package)
    digest = hashlib.sha256(_ground())
    for path in covered(*roots):
        digest.update(
            f"{path.relative_to(PROJECT_ROOT).as_posix()}\0{hashlib.sha256(_content(path)).hexdigest()}\n".encode()
        )
    return digest.hexdigest()


@cache
def _ground() -> bytes:
    """The versions of Python and of the libraries."""
    lines = (f"{library}=={version(library)}\n" for library in _LIBRARIES)
    return "".join([platform.python_version(), *lines]).encode()


def covered(*roots: str) -> list[Path]:
    """The files that a fingerprint of `roots` covers, sorted: modules and the data files of their packages.

    Raises:
        FileNotFoundError: for a root that is no module of the project.
    """
    found = {path for name in roots or PACKAGES for path in _below(name)}
    if roots:
        _follow(found)
    return sorted(found | {data for path in found for data in _data_of(path)})


def forget() -> None:
    """Read everything anew the next time, for whoever changes source while it runs."""
    code_sha256.cache_clear()
    _file_of.cache_clear()
    _content.cache_clear()


def _below(name: str) -> list[Path]:
    """The module itself, or every module of a package, with the packages around it."""
    path = _file_of(name)
    if path is None:
        raise FileNotFoundError(f"{name}: no Python source below the project's root; the code cannot be fingerprinted")
    return [*_named(name), *(path.parent.rglob("*.py") if path.name == "__init__.py" else ())]


def _follow(found: set[Path]) -> None:
    """Add to `found` all that its files import, directly or through others."""
    todo = list(found)
    while todo:
        for name in _imports(todo.pop()):
            fresh = [path for path in _named(name) if path not in found]
            found.update(fresh)
            todo += fresh


def _named(name: str) -> Iterator[Path]:
    """The files that `import name` runs: its packages' and its own, as far as they are the project's."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = _file_of(".".join(parts[:count]))
        if path is not None:
            yield path


@cache
def _file_of(name: str) -> Path | None:
    place = PROJECT_ROOT.joinpath(*name.split("."))
    if name.partition(".")[0] not in PACKAGES:
        return None
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def _data_of(path: Path) -> Iterator[Path]:
    """The data files of the package whose `__init__.py` this is: what lies in it, but in no package below it."""
    if path.name != "__init__.py":
        return
    folders = [path.parent]
    while folders:
        for entry in folders.pop().iterdir():
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            if entry.is_dir() and not (entry / "__init__.py").is_file():
                folders.append(entry)
            elif entry.is_file() and entry.suffix not in (".py", ".pyc"):
                yield entry


@cache
def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".py":
        check_bytecode(path, content)
    return content


def _imports(path: Path) -> tuple[str, ...]:
    """The names that a module imports: modules, and what may be modules of a package it imports from."""
    return _named_in(_content(path), path.relative_to(PROJECT_ROOT).parent.parts)


@cache
def _named_in(source: bytes, package: tuple[str, ...]) -> tuple[str, ...]:
    """What `source` imports, as a module of `package`; it hangs on nothing else, so `forget` may leave it."""
    names: list[str] = []
    for node in _statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*around, *([node.module] if node.module else [])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Every statement, those inside others too, but not what only a type checker runs."""
    for node in body:
        yield node
        inner = [getattr(node, field, []) for field in ("body", "orelse", "finalbody", "handlers", "cases")]
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            inner[0] = []
        for part in inner:
            if isinstance(part, list):
                yield from _statements(part)


def _is_type_checking(test: ast.expr) -> bool:
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"
