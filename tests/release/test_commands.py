"""`rc1 release`, also with `--verify`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from rc1_lib.errors import RC1Error
from rc1_lib.release.package import read_key
from rc1_lib.run import Run
from tests.cli.conftest import call


def keys(folder: Path) -> tuple[str, str]:
    """A private and a public key, as openssl writes them."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / "key.pem", folder / "key.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return str(private), str(public)


def test_release_is_packed_signed_and_verified(own: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, public = keys(tmp_path)
    where = ["--workspace", str(own.workspace.root)]
    settings = [part for override in own.overrides for part in ("--set", override)]
    assert call("release", *where, *settings, "--sign", private, "--json") == 0
    written = json.loads(capsys.readouterr().out)
    package = str(own.workspace.path(written["path"]))
    assert call("release", "--verify", package, "--key", public, *where) == 0
    assert "signature is valid" in capsys.readouterr().out
    assert call("release", "--verify", package, "--key", private, *where) == 2
    assert "is not a public key" in capsys.readouterr().err
    body = Path(package).read_bytes()
    Path(package).write_bytes(body.replace(b'"profile": "local"', b'"profile": "prod!"', 1))
    assert call("release", "--verify", package, *where, "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert len(found["problems"]) == 1
    assert found["problems"][0].split(":")[0] in found["files"]


def test_key_that_cannot_sign_is_rejected_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    rsa = generate_private_key(public_exponent=65537, key_size=2048)
    own, locked = Ed25519PrivateKey.generate(), BestAvailableEncryption(b"x")
    for content, reason in (
        (rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "ed25519"),
        (own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked), "password"),
        (own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "private key"),
    ):
        path.write_bytes(content)
        with pytest.raises(RC1Error, match=rf"key\.pem.*{reason}"):
            read_key(path)
    with pytest.raises(RC1Error, match=r"none\.pem"):
        read_key(tmp_path / "none.pem")
