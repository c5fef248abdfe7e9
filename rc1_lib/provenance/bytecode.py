"""What Python would run beside our source or in its place: a fingerprint of source says nothing about that.

Python prefers the bytecode in `__pycache__` where it says that it was made of this very source, and imports bytecode
and shared libraries that lie among the source without any. Whoever plants those changes the code that runs, and no
byte of what is fingerprinted. This looks for them. It does not hold up code that is running already.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterator
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

from rc1_lib.errors import RC1Error

_HEADER = 16
"""Bytes before the code: the magic number, flags, and what it was made of."""
_BY_HASH, _LOOKED_AT = 1, 2
"""Flags: made of source of this hash, not of this time and size; and whether Python compares the hash."""


def check_bytecode(path: Path, source: bytes) -> None:
    """Refuse a module in whose place Python would run something else than it says.

    Args:
        path: of the module.
        source: its content.

    Raises:
        RC1Error: naming the bytecode.
    """
    cached = Path(cache_from_source(path))
    found = _would_run(cached.read_bytes(), path, source) if cached.is_file() else None
    if found is not None and found != compile(source, path, "exec", dont_inherit=True):
        raise RC1Error(
            f"{cached}: is not what {path.name} compiles to, and Python would run it in its place; remove the folder "
            f"{cached.parent.name}, and find out who wrote into it"
        )


def _would_run(content: bytes, path: Path, source: bytes) -> object:
    """The code that Python would take from a file of bytecode; None where it would compile the source itself."""
    flags, made_of = int.from_bytes(content[4:8], "little"), content[8:_HEADER]
    if content[:4] != MAGIC_NUMBER:
        return None
    if flags & _BY_HASH:
        taken = not flags & _LOOKED_AT or made_of == source_hash(source)
    else:
        seen = path.stat()
        taken = made_of == b"".join(
            (int(one) & 0xFFFFFFFF).to_bytes(4, "little") for one in (seen.st_mtime, len(source))
        )
    try:
        return marshal.loads(content[_HEADER:]) if taken else None
    except (EOFError, ValueError, TypeError):
        return None


def check_importable(package: Path) -> None:
    """Refuse what Python can import from a package and no fingerprint covers.

    Raises:
        RC1Error: for bytecode or a shared library among the source, or a link to a folder.
    """
    for path in _below(package):
        if path.is_dir():
            raise RC1Error(
                f"{path}: is a link to a folder, expected a folder of its own; no fingerprint covers its source"
            )
        if path.name.endswith((*BYTECODE_SUFFIXES, *EXTENSION_SUFFIXES)):
            raise RC1Error(f"{path}: can be imported and is no source, so no fingerprint covers it; remove it")


def _below(package: Path) -> Iterator[Path]:
    """Every file outside `__pycache__`, and every link to a folder, which is not followed."""
    for place, folders, files in os.walk(package):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(place, name) for name in files)
        yield from (Path(place, name) for name in folders if Path(place, name).is_symlink())
