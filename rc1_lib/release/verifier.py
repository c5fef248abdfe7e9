"""The form of a package, and whether an archive still is what `rc1 release` wrote: its hashes, and its signature.

A package is a plain tar archive: SHA256SUMS, then all files by name, then the signature of SHA256SUMS if it is signed.
A name and a size determine a file's header, so that a flipped bit is found in headers and padding too. An archive is
read but never unpacked.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rc1_lib.errors import RC1Error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SUMS, SIGNATURE, MANIFEST = "SHA256SUMS", "SHA256SUMS.sig", "MANIFEST.json"
_BLOCK, _RECORD = 512, 10_240
_CHUNK, _MOST_KEPT = 1 << 20, 4 << 20


@dataclass(slots=True)
class Findings:
    """The result of checking a package.

    Attributes:
        sha256: SHA-256 of the package itself.
        files: name -> SHA-256 of every file that SHA256SUMS covers.
        problems: what differs, one sentence each; empty if the package is intact.
        signed: whether it has a signature.
        signature_checked: whether the signature was checked with a key and is valid.
    """

    sha256: str = ""
    files: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    signed: bool = False
    signature_checked: bool = False


def sums_of(files: Mapping[str, str]) -> bytes:
    """Return the content of SHA256SUMS, in the format of `sha256sum -c`.

    Args:
        files: name -> SHA-256.
    """
    return "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(files.items())).encode()


def write_file(stream: IO[bytes], name: str, content: bytes) -> int:
    """Write header, bytes, and zeros up to a whole block; return the number of bytes.

    Raises:
        RC1Error: when name or size does not fit.
    """
    try:
        head = _header(name, len(content))
    except ValueError:
        raise RC1Error(
            f"{name}: does not fit into an archive, which allows names of at most 255 bytes and files of at most 8 GiB"
        ) from None
    return sum(stream.write(part) for part in (head, content, bytes(-len(content) % _BLOCK)))


def end_of(length: int) -> bytes:
    """Return the zeros after the last file, at least two blocks and up to a whole record.

    Args:
        length: the bytes of all files with their headers.
    """
    return bytes(2 * _BLOCK + -(length + 2 * _BLOCK) % _RECORD)


def _header(name: str, size: int) -> bytes:
    """Return the only header that a file may have: no owner, no time, mode 0644."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


def fault_of_name(name: str) -> str:
    """Return why a package must not contain a name; "" if it may."""
    if not name or name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is not a relative path"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "has an empty part, '.' or '..'"
    return "has characters that are not allowed in a package" if re.search(r"[\\\x00-\x1f\x7f]", name) else ""


def verify(package: Path, key: Ed25519PublicKey | None = None) -> Findings:
    """Check every byte of a package.

    Args:
        key: the key that must have signed it; None: no signature is required.

    Raises:
        RC1Error: when the file is missing, or is not a package from some byte on.
    """
    if not package.is_file():
        raise RC1Error(f"{package}: file not found")
    found, kept = Findings(), {SUMS: b"", SIGNATURE: b""}
    with package.open("rb") as stream:
        try:
            for name, sha256, content in _files(stream):
                if name in found.files:
                    raise _NotWrittenByUsError(f"{name} is in it twice")
                found.files[name] = sha256
                if name in kept:
                    kept[name] = content
        except _NotWrittenByUsError as fault:
            raise RC1Error(f"{package}: is not what `rc1 release` writes: {fault}") from None
        stream.seek(0)
        found.sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    found.signed = found.files.pop(SIGNATURE, None) is not None
    found.files.pop(SUMS, None)
    found.problems = list(_differences(kept[SUMS], found.files))
    if key is not None and not found.problems:
        found.problems = list(_signature_faults(found, kept, key))
        found.signature_checked = not found.problems
    return found


class _NotWrittenByUsError(Exception):
    """The archive differs from what RC1 writes outside of its files; the message says where."""


def _files(stream: IO[bytes]) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, SHA-256 and first bytes of every file."""
    length = 0
    while (block := stream.read(_BLOCK)) != bytes(_BLOCK):
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
            known = _header(entry.name, entry.size) == block and not fault_of_name(entry.name)
        except (tarfile.HeaderError, ValueError):
            known = False
        if not known:
            raise _NotWrittenByUsError(f"the header at byte {length:,}")
        digest, kept, left = hashlib.sha256(), b"", entry.size
        while left and (chunk := stream.read(min(_CHUNK, left))):
            digest.update(chunk)
            kept = kept + chunk if len(kept) < _MOST_KEPT else kept
            left -= len(chunk)
        padding = -entry.size % _BLOCK
        if left or stream.read(padding) != bytes(padding):
            raise _NotWrittenByUsError(f"the end of {entry.name}")
        length += _BLOCK + entry.size + padding
        yield entry.name, digest.hexdigest(), kept
    end = end_of(length)
    if not length or block + stream.read(len(end)) != end:
        raise _NotWrittenByUsError("the end of the archive")


def _differences(sums: bytes, files: Mapping[str, str]) -> Iterator[str]:
    """Name every file that differs from SHA256SUMS, is missing, or was added."""
    lines = (line.partition("  ") for line in sums.decode("utf-8", "replace").splitlines())
    wanted = {name: sha256 for sha256, _, name in lines}
    if sums == sums_of(files):
        return
    for name in sorted({*wanted, *files}):
        if name not in files:
            yield f"{name}: is missing, but {SUMS} lists it"
        elif name not in wanted:
            yield f"{name}: is not listed in {SUMS}"
        elif wanted[name] != files[name]:
            yield f"{name}: differs: SHA-256 {files[name][:16]}, {SUMS} has {wanted[name][:16]}"
    if wanted == files:
        yield f"{SUMS}: does not have the form that RC1 writes"


def _signature_faults(found: Findings, kept: Mapping[str, bytes], key: Ed25519PublicKey) -> Iterator[str]:
    from cryptography.exceptions import InvalidSignature

    if not found.signed:
        yield "it is not signed, but a key was given"
        return
    try:
        key.verify(kept[SIGNATURE], kept[SUMS])
    except InvalidSignature:
        yield f"{SIGNATURE}: is not a signature of {SUMS} by the given key"


def verdict_lines(found: Findings) -> list[str]:
    """Return the findings in words."""
    if found.problems:
        return [*found.problems, f"REFUSED: this is not what RC1 wrote ({len(found.problems)} differences)"]
    checked = "signed, and the signature is valid" if found.signature_checked else "signed, not checked: no --key"
    signed = checked if found.signed else "not signed"
    return [f"whole: {len(found.files):,} files as in {SUMS}, {signed}", f"SHA-256 {found.sha256}"]
