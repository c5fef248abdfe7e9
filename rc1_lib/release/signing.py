"""The signature of a package: an in-toto statement in a DSSE envelope, by an ed25519 key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.provenance.signatures import read_private, sign
from rc1_lib.release.verifier import PAYLOAD_TYPE, statement_of, text_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def read_key(path: Path) -> Ed25519PrivateKey:
    """The key that `--sign` names.

    Raises:
        RC1Error: when the file is none; its content is never repeated.
    """
    return read_private(path, f"--sign {path}")


def public_part(private: Ed25519PrivateKey) -> bytes:
    """The public key of a private one, in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def envelope(files: Mapping[str, str], key: str, private: Ed25519PrivateKey) -> bytes:
    """The signed statement about a package's files.

    Args:
        files: name -> SHA-256 of every file, the manifest among them.
        key: names the package.
        private: signs.
    """
    return text_of(sign(text_of(statement_of(files, key)), PAYLOAD_TYPE, private))
