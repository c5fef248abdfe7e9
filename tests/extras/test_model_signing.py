"""OpenSSF signatures of the policies in a package: what holds, and what does not."""

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
def test_every_policy_is_signed_beside_a_package_that_stays_the_same(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    before = package.read_bytes()
    assert [path.name for path in sign_models(package, private)] == ["rc1_x.rc1.sig", "rc1_x.rc1-7.sig"]
    assert package.read_bytes() == before
    assert model_faults(package, public) == []


def a_byte(files: dict[str, bytes]) -> None:
    files["checkpoints/rc1/step_00048/adapter.safetensors"] = b"weights" * 99 + b"Weights"


def one_more(files: dict[str, bytes]) -> None:
    files["checkpoints/rc1/step_00048/adapter_more.bin"] = b""


def one_of_git(files: dict[str, bytes]) -> None:
    files["checkpoints/rc1/step_00048/.gitignore"] = b""


def one_less(files: dict[str, bytes]) -> None:
    del files["checkpoints/rc1/step_00048/manifest.json"]


@needs_library
@pytest.mark.parametrize(
    ("damage", "words"),
    [(a_byte, "Hash mismatch"), (one_more, "Extra files"), (one_of_git, "Extra files"), (one_less, "Missing files")],
)
def test_another_policy_in_a_package_that_is_whole_is_refused(
    damage: Callable[[dict[str, bytes]], None], words: str, tmp_path: Path
) -> None:
    """The package has a manifest of its own, so that its own verifier finds nothing."""
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    files = dict(FILES)
    damage(files)
    (fault,) = model_faults(packed(package, files), public)
    assert fault.startswith("rc1_x.rc1.sig: not valid") and words in fault


@needs_library
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("checkpoints/rc1/step_00001/adapter.safetensors", "a second step of rc1, expected only step_00001"),
        ("checkpoints/rc1/step_00048/sub/a.safetensors", "not a file of a policy, expected checkpoints/RUN/STEP/FILE"),
        ("checkpoints/a.safetensors", "not a file of a policy"),
    ],
)
def test_a_file_below_the_checkpoints_that_no_signature_covers_is_refused_by_name(
    name: str, words: str, tmp_path: Path
) -> None:
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    packed(package, {**FILES, name: b"of nobody"})
    assert words in model_faults(package, public)[0]
    with pytest.raises(RC1Error, match=words):
        sign_models(package, private)


def named_key(signature: str) -> str:
    """The SHA-256 of the key that a signature says it is by."""
    (found,) = re.findall(r'"hint": ?"([0-9a-zA-Z+/=]+)"', signature)
    return str(found)


@needs_library
def test_a_signature_that_is_forged_missing_or_anothers_is_refused(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    others, _ = keys(tmp_path, "other")
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    mine, second = (signature_of(package, name) for name in ("rc1", "rc1-7"))
    first = mine.read_text()
    mine.write_bytes(second.read_bytes())
    assert "Extra files" in model_faults(package, public)[0], "it is of the other policy, which has fewer"
    sign_models(package, others)
    assert len(model_faults(package, public)) == 2
    forged = mine.read_text()
    mine.write_text(forged.replace(named_key(forged), named_key(first)))  # it names my key, and is not by it
    assert "forged or altered" in model_faults(package, public)[0]
    for text, words in (
        ("{", "not valid"), ("[" * 100_000, "nested too deeply"), (" " * (1 << 20) + "{", "is larger than"),
    ):  # fmt: skip
        mine.write_text(text)
        assert words in model_faults(package, public)[0]
    mine.unlink()
    assert (
        model_faults(package, public)[0]
        == "rc1_x.rc1.sig: not found next to the package, expected the signature of rc1"
    )


@needs_library
def test_the_command_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, public = keys(tmp_path)
    package = packed(tmp_path / "rc1_x.tar", FILES)
    sign_models(package, private)
    for damaged, words in ((False, "has a valid signature"), (True, "expected the signature of rc1")):
        if damaged:
            signature_of(package, "rc1").unlink()
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(package), "--model-key", str(public), "--workspace", str(tmp_path)])
        assert (ended.value.code or 0) == (2 if damaged else 0)
        assert words in capsys.readouterr().out


@needs_library
def test_a_key_that_cannot_sign_is_refused_before_anything_is_packed(tmp_path: Path) -> None:
    private, public = keys(tmp_path)
    check_model_key(private)
    elsewhere, _ = keys(tmp_path, "curve", SECP256K1())
    edwards = tmp_path / "ed.pem"
    key = Ed25519PrivateKey.generate()
    edwards.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for path, words in (
        (elsewhere, "expected a key on one of the curves secp256r1"), (edwards, "expected a key on one of the curves"),
        (public, "not a private key in PEM"), (tmp_path / "none", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(RC1Error, match=words):
            check_model_key(path)
    with pytest.raises(RC1Error, match=r" public .*PEM"):
        model_faults(packed(tmp_path / "rc1_x.tar", FILES), private)


def test_without_the_library_it_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model_signing", None)
    with pytest.raises(RC1Error, match=r"pip install 'rc1\[model-signing\]'"):
        check_model_key(keys(tmp_path)[0])
