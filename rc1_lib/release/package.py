"""The reproduction package: one archive with the hashes of its contents; the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import orjson

from rc1_lib.errors import RC1Error
from rc1_lib.masking import conceal_bytes, secrets
from rc1_lib.provenance import signatures
from rc1_lib.release.contents import LOCK, installed, key_artifacts, packed
from rc1_lib.release.ready import Ready
from rc1_lib.release.verifier import MANIFEST, SIGNATURE, SUMS, end_of, fault_of_name, sums_of, write_file
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
        signed_by: the id of the signing key; empty if it is not signed.
    """

    path: str
    sha256: str
    files: int
    signed_by: str


def write_package(ready: Ready, sign: Ed25519PrivateKey | None = None, also: tuple[str, ...] = ()) -> Package:
    """Write `reports/release/rc1_<key>.tar`, and its SHA-256 and manifest in `reports/rc1`.

    Args:
        sign: the key that signs the package; None: it is not signed.
        also: further files, relative to the workspace: the report page.

    Raises:
        RC1Error: when a file is missing or contains a secret, one that the ticket pins has changed since `check_ready`,
            or another process writes into the workspace.
    """
    run = ready.run
    paths = {**packed(ready), **{name: run.workspace.path(name) for name in also}}
    contents = {name: _read(name, path) for name, path in paths.items()}
    artifacts = key_artifacts(ready)
    for one in artifacts.values():
        content = contents.get(str(one["path"]))
        if content is not None and hashlib.sha256(content).hexdigest() != one["sha256"]:
            raise RC1Error(f"{one['path']}: changed after it was verified; run again when nothing writes to it")
    contents[LOCK] = installed().encode()
    manifest = {
        "key": ready.key,
        "profile": run.config.profile,
        **{name: ready.ticket[name] for name in ("commit", "package") if name in ready.ticket},
        "code_sha256": ready.ticket["code_sha256"],
        "config_sha256": run.config_sha256,
        "waived": ready.ticket["waived"],
        "not_applicable": ready.ticket["not_applicable"],
        "artifacts": artifacts,
    }
    contents[MANIFEST] = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
    target = f"{FOLDER}/rc1_{ready.key}.tar"
    with recorded_write(run.workspace, target, {"kind": KIND, "inputs": {"evaluation": ready.key}}) as stream:
        write_archive(stream, contents, sign)
    signed_by = "" if sign is None else signatures.key_id(sign.public_key())
    return Package(target, sha256_file(run.workspace.path(target)), len(contents), signed_by)


def write_archive(stream: IO[bytes], contents: Mapping[str, bytes], sign: Ed25519PrivateKey | None = None) -> None:
    """Write the archive in the exact form that the verifier reads.

    Args:
        contents: name -> bytes of every file.
        sign: the key that signs it.
    """
    sums = sums_of({name: hashlib.sha256(content).hexdigest() for name, content in contents.items()})
    parts = [(SUMS, sums), *sorted(contents.items())]
    if sign is not None:
        parts.append((SIGNATURE, sign.sign(sums)))
    stream.write(end_of(sum(write_file(stream, name, content) for name, content in parts)))


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
