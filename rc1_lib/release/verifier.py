"""Check a reproduction package against its manifest. This file runs alone, with only Python's standard library.

    python verifier.py rc1_0123456789ab.tar [--key public.pem]

A package is a tar archive of exactly one form: uncompressed, in a fixed order, each header determined by a name and a
size. So every byte is accounted for, nothing in it can be larger than it looks, and it can contain only files. It is
read but never unpacked. A signature is checked only with `--key`, which needs `securesystemslib`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

MANIFEST, ENVELOPE = "MANIFEST.json", "ATTESTATION.dsse.json"
"""The first file in a package, and the last one if it is signed."""
FORMAT = 1
STATEMENT, PAYLOAD_TYPE = "https://in-toto.io/Statement/v1", "application/vnd.in-toto+json"
PREDICATE = "urn:rc1:reproduction-package:v1"
BLOCK, RECORD = 512, 10_240
MOST_FILES, MOST_BYTES_OF_TEXT = 10_000, 16 << 20
_CHUNK = 1 << 20
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a hard link", tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a pipe", tarfile.DIRTYPE: "a folder",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}  # fmt: skip
_SPKI_ED25519 = bytes.fromhex("302a300506032b6570032100")


class NotAPackage(Exception):
    """The file is not a package, or reading it further is unsafe; the message says why."""


@dataclass(slots=True)
class Findings:
    """The result of checking a package.

    Attributes:
        manifest: the package's manifest.
        sha256: SHA-256 of the package itself.
        files: name -> SHA-256 of every file in it.
        problems: what differs, one sentence each; empty if the package is intact.
        signed_by: the key id in its signature; empty if it is not signed.
        signature_checked: whether the signature was checked with a key and is valid.
    """

    manifest: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""
    files: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    signed_by: str = ""
    signature_checked: bool = False


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    sha256: str
    text: bytes


def header(name: str, size: int) -> bytes:
    """Return the only valid header of a file: no owner, no time, mode 0644.

    Raises:
        ValueError: when a name or a size does not fit.
    """
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


def text_of(value: Any) -> bytes:
    """Return the only valid text of a manifest or an envelope."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own digest."""
    body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    return hashlib.sha256(text_of(body)).hexdigest()


def statement_of(files: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return the in-toto statement about a package: one subject per file."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(files.items())],
        "predicateType": PREDICATE,
        "predicate": {"key": key},
    }


def fault_of_name(name: str) -> str:
    """Return why a package must not contain a name; "" if it may."""
    if not name or name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is not a relative path"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "has an empty part, '.' or '..'"
    return "has characters that are not allowed in a package" if re.search(r"[\\\x00-\x1f\x7f]", name) else ""


def verify(package: Path, key: bytes | None = None) -> Findings:
    """Check every byte of a package.

    Args:
        package: the archive.
        key: the ed25519 public key (PEM) that must have signed it; None: no signature is required.

    Raises:
        NotAPackage: when it is not a package of RC1, or contains what no package may.
    """
    if not package.is_file():
        raise NotAPackage("file not found")
    found = Findings()
    with package.open("rb") as stream:
        members = list(_members(stream, package.stat().st_size, found))
        stream.seek(0)
        found.sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if not members:
        raise NotAPackage("is an empty archive, not a package of RC1")
    envelope = next((member.text for member in members if member.name == ENVELOPE), None)
    found.files = {member.name: member.sha256 for member in members if member.name != ENVELOPE}
    _compare(found, [member.name for member in members])
    _check_envelope(found, envelope, key)
    return found


def _members(stream: IO[bytes], size: int, found: Findings) -> Iterator[_Member]:
    """Yield every file in order; damage between files is added to the problems."""
    names: set[str] = set()
    layout: dict[int, tuple[str, int]] = {}
    while (block := stream.read(BLOCK)) != bytes(BLOCK):
        offset = stream.tell() - len(block)
        read = _read_header(block, offset, layout.get(offset), found, first=not names)
        if read is None:
            return
        name, length = read
        if name in names:
            raise NotAPackage(f"{name}: is in the archive twice, so it is unclear which one counts")
        if len(names) >= MOST_FILES:
            raise NotAPackage(f"it contains more than {MOST_FILES:,} files")
        if stream.tell() + length > size:
            found.problems.append(f"{name}: is truncated: the archive ends within it")
            return
        names.add(name)
        member = _read_member(stream, name, length)
        if stream.read(padding := -length % BLOCK) != bytes(padding):
            found.problems.append(f"{name}: is followed by unexpected bytes")
        if name == MANIFEST:
            found.manifest = _read_manifest(member.text, found)
            layout = _layout(found.manifest, stream.tell())
        yield member
    _check_end(stream, size, found)


def _read_header(
    block: bytes, offset: int, expected: tuple[str, int] | None, found: Findings, first: bool
) -> tuple[str, int] | None:
    """Return name and size; of a damaged header those that the manifest expects there, or None."""
    try:
        entry = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        whole = header(entry.name, entry.size) == block
    except (tarfile.HeaderError, ValueError):
        if first:
            raise NotAPackage(
                "is not a package of RC1, which is an uncompressed tar archive that begins with its manifest"
            ) from None
        if expected is None:
            found.problems.append(f"from byte {offset:,} on the archive is unreadable")
        else:
            found.problems.append(f"{expected[0]}: its header is damaged")
        return expected
    if first and entry.name != MANIFEST:
        raise NotAPackage(f"begins with '{_shown(entry.name)}' instead of {MANIFEST}, so it is not a package of RC1")
    if fault := fault_of_name(entry.name):
        raise NotAPackage(f"'{_shown(entry.name)}': the name {fault}")
    if entry.type in _KINDS:
        raise NotAPackage(f"{entry.name}: is {_KINDS[entry.type]}; a package contains only files")
    if not whole:
        found.problems.append(f"{entry.name}: its header differs from what RC1 writes (owner, time, mode or type)")
    return entry.name, entry.size


def _read_member(stream: IO[bytes], name: str, length: int) -> _Member:
    if name in (MANIFEST, ENVELOPE):
        if length > MOST_BYTES_OF_TEXT:
            raise NotAPackage(f"{name}: is larger than {MOST_BYTES_OF_TEXT:,} bytes")
        content = stream.read(length)
        return _Member(name, hashlib.sha256(content).hexdigest(), content)
    digest, left = hashlib.sha256(), length
    while left:
        chunk = stream.read(min(_CHUNK, left))
        digest.update(chunk)
        left -= len(chunk)
    return _Member(name, digest.hexdigest(), b"")


def _read_manifest(content: bytes, found: Findings) -> dict[str, Any]:
    """Parse the manifest; if it was edited, that is a problem, but the files are still compared with it."""
    try:
        body = json.loads(content)
        if body["format"] != FORMAT:
            raise NotAPackage(
                f"{MANIFEST}: has format {body['format']!r}, expected {FORMAT}: use the RC1 that wrote it"
            )
        for name, one in body["files"].items():
            if fault_of_name(name) or not isinstance(one["sha256"], str) or not 0 <= one["bytes"] < 1 << 40:
                raise ValueError(name)
        whole = text_of(body) == content and digest_of(body) == body["manifest_sha256"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found.problems.append(f"{MANIFEST}: is damaged, so there is nothing to compare the files with")
        return {}
    if not whole:
        found.problems.append(f"{MANIFEST}: was edited after it was written (its digest does not match)")
    return dict(body)


def _layout(manifest: Mapping[str, Any], offset: int) -> dict[int, tuple[str, int]]:
    """Return offset of a file's header -> the file's name and size."""
    places = {}
    for name, one in sorted(manifest.get("files", {}).items()):
        places[offset] = (name, one["bytes"])
        offset += BLOCK + one["bytes"] + -one["bytes"] % BLOCK
    return places


def _check_end(stream: IO[bytes], size: int, found: Findings) -> None:
    """Check that only zeros follow the last file: at least two blocks, up to a whole record."""
    begun = stream.tell() - BLOCK
    end = -(-(begun + 2 * BLOCK) // RECORD) * RECORD
    rest = stream.read(end - stream.tell() + 1)
    if size != end or rest != bytes(end - begun - BLOCK):
        found.problems.append("the end of the archive differs from what RC1 writes: it was changed, extended or cut")


def _compare(found: Findings, order: list[str]) -> None:
    """Name every file that differs from the manifest, is missing, was added, or was given another name."""
    wanted = {name: one["sha256"] for name, one in found.manifest.get("files", {}).items()}
    there = {name: sha256 for name, sha256 in found.files.items() if name != MANIFEST}
    if not found.manifest:
        return
    missing = sorted(wanted.keys() - there.keys())
    for name in sorted(there.keys() - wanted.keys()):
        before = next((one for one in missing if wanted[one] == there[name]), None)
        if before is None:
            found.problems.append(f"{name}: was added, since the manifest does not list it")
        else:
            missing.remove(before)
            found.problems.append(f"{name}: was renamed, since the manifest calls it {before}")
    found.problems += [f"{name}: is missing" for name in missing]
    for name in sorted(wanted.keys() & there.keys()):
        if wanted[name] != there[name]:
            found.problems.append(f"{name}: differs: SHA-256 {there[name][:16]}, the manifest has {wanted[name][:16]}")
    tail = [ENVELOPE] if ENVELOPE in order else []
    if not found.problems and order != [MANIFEST, *sorted(wanted), *tail]:
        found.problems.append("the files are not in the order in which RC1 writes them")


def _check_envelope(found: Findings, content: bytes | None, key: bytes | None) -> None:
    """Check that the statement is about exactly these files, and with a key also its signature."""
    if content is None:
        if key is not None:
            found.problems.append("it is not signed, but a key was given")
        return
    try:
        envelope = json.loads(content)
        payload = base64.b64decode(envelope["payload"], validate=True)
        (signature,) = envelope["signatures"]
        found.signed_by = str(signature["keyid"])
        expected = text_of(statement_of(found.files, str(found.manifest.get("key"))))
        written = {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": found.signed_by, "sig": _again(signature["sig"])}],
        }
        whole = text_of(written) == content
    except (ValueError, KeyError, TypeError, RecursionError):
        found.problems.append(f"{ENVELOPE}: is damaged, or not a signature by one key")
        return
    if not whole:
        found.problems.append(f"{ENVELOPE}: was edited: it differs from what RC1 writes")
    if payload != expected and not found.problems:
        found.problems.append(f"{ENVELOPE}: the signed statement is about other files than those in the package")
    elif key is not None and whole:
        _check_signature(found, written, key)


def _again(signature: str) -> str:
    """Decode and encode a signature, so that only one text of the same bytes passes."""
    return base64.b64encode(base64.b64decode(signature, validate=True)).decode()


def _check_signature(found: Findings, envelope: dict[str, Any], key: bytes) -> None:
    public = public_key(key)
    try:
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import VerificationError
        from securesystemslib.signer import SSlibKey
    except ImportError:
        raise NotAPackage(
            "a signature can only be checked with securesystemslib: pip install securesystemslib"
        ) from None
    keyid = key_id(public)
    if found.signed_by != keyid:
        found.problems.append(f"it was signed by key {found.signed_by[:16]}, but the given key is {keyid[:16]}")
        return
    try:
        named = SSlibKey(keyid, "ed25519", "ed25519", {"public": public.hex()})
        Envelope.from_dict(envelope).verify([named], 1)
    except VerificationError:
        found.problems.append("the signature is not valid for the given key: it is forged, or is about other files")
        return
    found.signature_checked = not found.problems


def key_id(public: bytes) -> str:
    """Return the id by which a signature names its key."""
    return hashlib.sha256(public).hexdigest()


def public_key(pem: bytes) -> bytes:
    """Return the 32 bytes of an ed25519 public key.

    Raises:
        NotAPackage: when `pem` is not such a key.
    """
    text = pem.decode("ascii", "replace")
    if "PRIVATE KEY" in text:
        raise NotAPackage("the given key is private; a signature is checked with the public key")
    inside = re.search(r"-----BEGIN PUBLIC KEY-----(.*?)-----END PUBLIC KEY-----", text, re.DOTALL)
    try:
        der = base64.b64decode("".join(inside[1].split()), validate=True) if inside else b""
    except ValueError:
        der = b""
    if len(der) != len(_SPKI_ED25519) + 32 or not der.startswith(_SPKI_ED25519):
        raise NotAPackage("the given key is not an ed25519 public key in PEM (-----BEGIN PUBLIC KEY-----)")
    return der[len(_SPKI_ED25519) :]


def _shown(name: str, most: int = 80) -> str:
    return "".join(one if one.isprintable() else "?" for one in name[:most])


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; exit codes: 0 the package is intact, 2 it is not."""
    parser = argparse.ArgumentParser(description="Check a reproduction package of RC1 without unpacking it.")
    parser.add_argument("package", type=Path, help="the archive")
    parser.add_argument("--key", type=Path, help="require a signature by this ed25519 public key (PEM)")
    options = parser.parse_args(arguments)
    try:
        found = verify(options.package, options.key.read_bytes() if options.key else None)
    except (NotAPackage, OSError) as refusal:
        print(f"refused: {options.package}: {refusal}", file=sys.stderr)
        return 2
    for line in verdict_lines(found):
        print(line)
    return 2 if found.problems else 0


def verdict_lines(found: Findings) -> list[str]:
    """Return the findings in words."""
    if found.problems:
        return [*found.problems, f"REFUSED: this is not what RC1 wrote ({len(found.problems)} differences)"]
    signed = "signed, and the signature is valid" if found.signature_checked else (
        f"signed by key {found.signed_by[:16]}, which was not checked: no --key" if found.signed_by else "not signed"
    )  # fmt: skip
    return [f"whole: {len(found.files):,} files as the manifest says, {signed}", f"SHA-256 {found.sha256}"]


if __name__ == "__main__":
    sys.exit(main())
