"""The reproduction package: one archive with a manifest of its contents; the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from rc1_lib.errors import RC1Error
from rc1_lib.masking import conceal_bytes, secrets
from rc1_lib.provenance import signatures
from rc1_lib.release.consistency import check_consistent
from rc1_lib.release.contents import LOCK, installed, key_artifacts, packed
from rc1_lib.release.ready import Ready
from rc1_lib.release.verifier import (
    BLOCK,
    ENVELOPE,
    FORMAT,
    MANIFEST,
    PAYLOAD_TYPE,
    RECORD,
    digest_of,
    fault_of_name,
    header,
    statement_of,
    text_of,
)
from rc1_lib.workspace.artifacts import recorded_write
from rc1_lib.workspace.file_hashes import sha256_file
from rc1_lib.workspace.input_files import read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FOLDER = "reports/release"
KIND = "package"
_PROSE = (".jsonl", ".md", ".html")
"""Files of dialogues, where text after a word such as `secret` is no reason to reject a release."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was written.

    Attributes:
        path: the archive's path, relative to the workspace.
        sha256: its SHA-256.
        files: the number of files in it.
        signed_by: the id of the signing key; empty if it is not signed.
    """

    path: str
    sha256: str
    files: int
    signed_by: str


def write_package(ready: Ready, sign: Ed25519PrivateKey | None = None, also: tuple[str, ...] = ()) -> Package:
    """Write `reports/release/rc1_<key>.tar`, and its SHA-256 and manifest in `reports/rc1`.

    Args:
        ready: the run to release.
        sign: the key that signs the package; None: it is not signed.
        also: further files, relative to the workspace: the report page.

    Raises:
        RC1Error: when a file is missing, contains a secret or contradicts the run's reports, or when another process
            writes into the workspace.
    """
    run = ready.run
    paths = {**packed(ready), **{name: run.workspace.path(name) for name in also}}
    contents = {name: _read(name, path) for name, path in paths.items()}
    check_consistent(ready, contents)
    contents[LOCK] = installed().encode()
    facts = {
        "key": ready.key,
        "profile": run.config.profile,
        **{name: ready.ticket[name] for name in ("commit", "package") if name in ready.ticket},
        "code_sha256": ready.ticket["code_sha256"],
        "config_sha256": run.config_sha256,
        "waived": ready.ticket["waived"],
        "not_applicable": ready.ticket["not_applicable"],
        "artifacts": key_artifacts(ready),
    }
    target = f"{FOLDER}/rc1_{ready.key}.tar"
    with recorded_write(run.workspace, target, {"kind": KIND, "inputs": {"evaluation": ready.key}}) as stream:
        signed_by = write_archive(stream, contents, facts, sign)
    return Package(target, sha256_file(run.workspace.path(target)), len(contents) + 1, signed_by)


def write_archive(
    stream: IO[bytes], contents: Mapping[str, bytes], facts: Mapping[str, Any], sign: Ed25519PrivateKey | None = None
) -> str:
    """Write the archive in the exact form that the verifier reads, and return the signing key's id, or "".

    Args:
        stream: the stream to write to.
        contents: name -> bytes of every file.
        facts: the other entries of the manifest; `key` identifies the package.
        sign: the key that signs it.
    """
    described = {name: {"bytes": len(one), "sha256": hashlib.sha256(one).hexdigest()} for name, one in contents.items()}
    manifest = {"format": FORMAT, **facts, "files": described}
    first = text_of({**manifest, "manifest_sha256": digest_of(manifest)})
    parts = [(MANIFEST, first), *sorted(contents.items())]
    signed_by = ""
    if sign is not None:
        prints = {name: hashlib.sha256(one).hexdigest() for name, one in parts}
        statement = statement_of(prints, str(facts["key"]))
        signature = text_of(signatures.sign(text_of(statement), PAYLOAD_TYPE, sign))
        parts.append((ENVELOPE, signature))
        signed_by = orjson.loads(signature)["signatures"][0]["keyid"]
    length = sum(_write_file(stream, name, content) for name, content in parts) + 2 * BLOCK
    stream.write(bytes(2 * BLOCK + -length % RECORD))
    return signed_by


def _write_file(stream: IO[bytes], name: str, content: bytes) -> int:
    """Write header, bytes, and zeros up to a whole block; return the number of bytes."""
    try:
        head = header(name, len(content))
    except ValueError:
        raise RC1Error(
            f"{name}: does not fit into an archive, which allows names of at most 255 bytes and files of at most 8 GiB"
        ) from None
    return sum(stream.write(part) for part in (head, content, bytes(-len(content) % BLOCK)))


def _read(name: str, path: Path) -> bytes:
    """Return the bytes of a file, checked for secrets.

    Raises:
        RC1Error: when it cannot be read, or contains what looks like a secret. Secrets are not masked here, because the
            file would then no longer match its fingerprint.
    """
    if fault := fault_of_name(name):
        raise RC1Error(f"{path}: cannot go into a package: its name {fault}; rename it")
    try:
        content = read_regular(path)
    except OSError as error:
        raise RC1Error(f"{path}: cannot be read ({error.strerror}), but the package must contain it") from None
    if _holds_secret(content, prose=path.suffix in _PROSE):
        raise RC1Error(
            f"{path}: contains what looks like a secret (a value from the environment, or text after a name such as "
            f"api_key or in an address), so no package is written; remove it and run again"
        )
    return content


def _holds_secret(content: bytes, *, prose: bool) -> bool:
    """Return whether it contains a secret of the environment or, except in prose, text in a secret's position."""
    known = any(secret.encode("utf-8", "surrogateescape") in content for secret in secrets())
    return known or (not prose and conceal_bytes(content, ()) != content)


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read the key that `--sign` names.

    Raises:
        RC1Error: when the file is not such a key; the error never repeats its content.
    """
    return signatures.read_private(path, f"--sign {path}")


def public_part(private: Ed25519PrivateKey) -> bytes:
    """Return the public key of a private one, in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
