"""The signature of a package: an in-toto statement in a DSSE envelope, by an ed25519 key.

ed25519 needs no random numbers to sign, so that the same package and the same key give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.errors import RC1Error
from rc1_lib.regular_files import read_regular
from rc1_lib.release.verifier import PAYLOAD_TYPE, key_id, statement_of, text_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_MOST_BYTES = 1 << 16
_HOW = "make one with `openssl genpkey -algorithm ed25519 -out key.pem`"


def read_key(path: Path) -> Ed25519PrivateKey:
    """A private key of ed25519, PEM, without a password.

    Raises:
        RC1Error: when the file is none; its content is never repeated.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(read_regular(path, _MOST_BYTES), password=None)
    except OSError as error:
        raise RC1Error(f"--sign {path}: cannot be read ({error.strerror}), expected a private key; {_HOW}") from None
    except TypeError:
        raise RC1Error(f"--sign {path}: is protected by a password, expected a key without one; {_HOW}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise RC1Error(f"--sign {path}: is no private key in PEM; {_HOW}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise RC1Error(f"--sign {path}: is a key of another kind, expected ed25519; {_HOW}")
    return key


def envelope(files: Mapping[str, str], key: str, private: Ed25519PrivateKey) -> bytes:
    """The signed statement about a package's files.

    Args:
        files: name -> SHA-256 of every file, the manifest among them.
        key: names the package.
        private: signs.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner, SSlibKey

    raw = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    signer = CryptoSigner(private, SSlibKey(key_id(raw), "ed25519", "ed25519", {"public": raw.hex()}))
    whole = Envelope(text_of(statement_of(files, key)), PAYLOAD_TYPE, {})
    whole.sign(signer)
    return text_of(whole.to_dict())
