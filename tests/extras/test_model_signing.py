"""OpenSSF signatures of the policies in a package: valid ones pass, all others fail."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, SECP256R1, EllipticCurve, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from rc1_lib.cli import main
from rc1_lib.errors import RC1Error
from rc1_lib.extras.model_signing import check_model_key, model_faults, sign_models, signature_of
from rc1_lib.release.package import write_archive

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("model_signing") is None, reason="the extra model-signing is not installed"
)
FILES = {
    "checkpoints/rc1/step_00048/adapter.safetensors": b"weights" * 100,
    "checkpoints/rc1/step_00048/manifest.json": b"{}",
    "checkpoints/rc1-7/step_00048/adapter.safetensors": b"others" * 100,
    "reports/train.json": b"{}",
}


def keys(folder: Path, name: str = "model", curve: EllipticCurve | None = None) -> tuple[Path, Path]:
    key = generate_private_key(curve or SECP256R1())
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with path.open("wb") as stream:
        write_archive(stream, files, {"key": path.stem})
    return path


@needs_library
def test_every_policy_is_signed_and_the_package_stays_unchanged(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    before = package.read_bytes()
    assert [path.name for path in sign_models(package, private)] == ["rc1_x.rc1.sig", "rc1_x.rc1-7.sig"]
    assert package.read_bytes() == before
    assert model_faults(package, public) == []


def change_a_byte(files: dict[str, bytes]) -> None:
    files["checkpoints/rc1/step_00048/adapter.safetensors"] = b"weights" * 99 + b"Weights"


def add_a_file(files: dict[str, bytes]) -> None:
    files["checkpoints/rc1/step_00048/adapter_more.bin"] = b""


def add_a_git_file(files: dict[str, bytes]) -> None:
    files["checkpoints/rc1/step_00048/.gitignore"] = b""


def delete_a_file(files: dict[str, bytes]) -> None:
    del files["checkpoints/rc1/step_00048/manifest.json"]


@needs_library
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change_a_byte, "Hash mismatch"),
        (add_a_file, "Extra files"),
        (add_a_git_file, "Extra files"),
        (delete_a_file, "Missing files"),
    ],
)
def test_signature_detects_a_changed_policy_in_an_intact_package(
    damage: Callable[[dict[str, bytes]], None], words: str, tmp_path: Path
) -> None:
    """The package's own manifest matches the changed files, so that its own verifier finds nothing."""
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    files = dict(FILES)
    damage(files)
    (fault,) = model_faults(packed(package, files), public)
    assert fault.startswith("rc1_x.rc1.sig: not valid") and words in fault


@needs_library
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("checkpoints/rc1/step_00001/adapter.safetensors", r"rc1/step_00048/[^ ]+: .* step_00001\b"),
        ("checkpoints/rc1/step_00048/sub/a.safetensors", r"step_00048/sub/a\.safetensors: .*RUN/STEP/FILE"),
        ("checkpoints/a.safetensors", r"checkpoints/a\.safetensors: "),
    ],
)
def test_file_that_no_signature_covers_is_rejected_by_name(name: str, error: str, tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    packed(package, {**FILES, name: b"unsigned"})
    assert re.search(error, model_faults(package, public)[0])
    with pytest.raises(RC1Error, match=error):
        sign_models(package, private)


def claimed_key(signature: str) -> str:
    """The SHA-256 of the key that a signature claims to be made with."""
    (found,) = re.findall(r'"hint": ?"([0-9a-zA-Z+/=]+)"', signature)
    return str(found)


@needs_library
def test_forged_missing_or_foreign_signature_is_rejected(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    foreign, _ = keys(tmp_path, "other")
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    first, second = (signature_of(package, name) for name in ("rc1", "rc1-7"))
    genuine = first.read_text()
    first.write_bytes(second.read_bytes())
    assert "Extra files" in model_faults(package, public)[0], "the other policy's signature covers fewer files"
    sign_models(package, foreign)
    assert len(model_faults(package, public)) == 2
    forged = first.read_text()
    first.write_text(forged.replace(claimed_key(forged), claimed_key(genuine)))
    assert "forged or altered" in model_faults(package, public)[0], "it claims the expected key and is not made with it"
    for text, words in (
        ("{", "not valid"), ("[" * 100_000, "nested too deeply"), (" " * (1 << 20) + "{", "is larger than"),
    ):  # fmt: skip
        first.write_text(text)
        assert words in model_faults(package, public)[0]
    first.unlink()
    assert model_faults(package, public)[0].startswith("rc1_x.rc1.sig: not found")


@needs_library
def test_verify_reports_valid_and_missing_signatures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    for damaged, words in ((False, "valid signature"), (True, "rc1_x.rc1.sig: not found")):
        if damaged:
            signature_of(package, "rc1").unlink()
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(package), "--model-key", str(public), "--workspace", str(tmp_path)])
        assert (ended.value.code or 0) == (2 if damaged else 0)
        assert words in capsys.readouterr().out


@needs_library
def test_unusable_signing_key_is_rejected(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    check_model_key(private)
    other_curve, _ = keys(tmp_path, "curve", SECP256K1())
    edwards = tmp_path / "ed.pem"
    key = Ed25519PrivateKey.generate()
    edwards.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for path, expected in (
        (other_curve, "secp256r1"), (edwards, "secp256r1"), (public, "private .*PEM"), (tmp_path / "none", "PEM"),
    ):  # fmt: skip
        with pytest.raises(RC1Error, match=rf"{path.name}: .*{expected}"):
            check_model_key(path)
    with pytest.raises(RC1Error, match=r" public .*PEM"):
        model_faults(packed(tmp_path / "rc1_x.tar", FILES), private)


def test_missing_library_is_an_error_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model_signing", None)
    with pytest.raises(RC1Error, match=r"pip install 'rc1\[model-signing\]'"):
        check_model_key(keys(tmp_path)[0])
