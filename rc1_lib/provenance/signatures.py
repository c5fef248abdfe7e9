"""Signatures by ed25519 keys in DSSE envelopes: read keys, sign, and verify.

ed25519 signs without random numbers, so the same payload and key give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.input_files import read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from securesystemslib.signer import SSlibKey

_MOST_BYTES = 1 << 16
_HOW = "make one with `openssl genpkey -algorithm ed25519 -out key.pem`"


def read_private(path: Path, named: str) -> Ed25519PrivateKey:
    """Read a private ed25519 key, in PEM without a password.

    Args:
        named: its name in errors, which never repeat the key.

    Raises:
        RC1Error: when the file is not such a key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_content(path, named), password=None)
    except TypeError:
        raise RC1Error(f"{named}: is protected by a password; expected a key without one; {_HOW}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise RC1Error(f"{named}: is not a private key in PEM; {_HOW}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise RC1Error(f"{named}: is a key of another type, expected ed25519; {_HOW}")
    return key


def read_public(path: Path, named: str) -> Ed25519PublicKey | None:
    """Read a public ed25519 key in PEM; None if the file contains anything else, such as a private key.

    Raises:
        RC1Error: when the file cannot be read.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_content(path, named))
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def _content(path: Path, named: str) -> bytes:
    try:
        return read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise RC1Error(f"{named}: cannot be read ({error.strerror}); expected a key in PEM; {_HOW}") from None


def sign(payload: bytes, payload_type: str, private: Ed25519PrivateKey) -> dict[str, Any]:
    """Return an envelope with a payload and its only signature."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

    whole = Envelope(payload, payload_type, {})
    whole.sign(CryptoSigner(private, _named(private.public_key())))
    return dict(whole.to_dict())


def holds(envelope: Any, payload: bytes, payload_type: str, public: Ed25519PublicKey) -> bool:
    """Return whether an envelope contains exactly this payload, with one valid signature by this key."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import Signature

    try:
        (given,) = envelope["signatures"]
        signature = Signature(key_id(public), base64.b64decode(given["sig"], validate=True).hex())
        expected = Envelope(payload, payload_type, {signature.keyid: signature})
        expected.verify([_named(public)], 1)
    except (VerificationError, ValueError, KeyError, TypeError):
        return False
    return bool(envelope == expected.to_dict())


def key_id(public: Ed25519PublicKey) -> str:
    """Return the id by which a signature names its key."""
    return hashlib.sha256(_raw(public)).hexdigest()


def _named(public: Ed25519PublicKey) -> SSlibKey:
    from securesystemslib.signer import SSlibKey

    return SSlibKey(key_id(public), "ed25519", "ed25519", {"public": _raw(public).hex()})


def _raw(public: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return public.public_bytes(Encoding.Raw, PublicFormat.Raw)
