"""OpenSSF model signatures of a release's policies, made with the library model-signing.

An elliptic-curve signature contains a random number. So it is stored next to the package, and the package's bytes do
not depend on it.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import atomic_write
from rc1_lib.workspace.input_files import read_regular

CURVES = ("secp256r1", "secp384r1", "secp521r1")
"""Curves that the library supports."""
_MOST_BYTES_OF_A_KEY, _MOST_BYTES_OF_A_SIGNATURE = 1 << 16, 1 << 20
_HOW = "make one with `openssl ecparam -name prime256v1 -genkey -noout -out model.pem`"
_HOW_PUBLIC = "make one with `openssl ec -in model.pem -pubout -out model.pub`"
_CHECKPOINTS, _DEPTH = "checkpoints", 4
"""A policy's files are at `checkpoints/RUN/STEP/FILE`."""


def check_model_key(path: Path) -> None:
    """Reject a key that cannot sign, before anything is packed.

    Raises:
        RC1Error: if the library is not installed, or the file is not a private key on one of its curves. The message
            never shows the file's content.
    """
    _library()
    _check_key(path, signs=True)


def sign_models(package: Path, key: Path) -> list[Path]:
    """Sign every policy in a new package, and return the signature files, which are next to it.

    Args:
        package: the archive.
        key: a private key that passed `check_model_key`.

    Raises:
        RC1Error: if there are files below its checkpoints that no signature would cover.
    """
    library, written = _library(), list[Path]()
    with _policies(package) as (policies, uncovered):
        if uncovered:
            raise RC1Error(f"{package}: {'; '.join(uncovered)}")
        for name, folder in policies.items():
            signed = folder.parent / f"{name}.sig"
            strict = library.signing.Config().set_hashing_config(_every_file(library))
            strict.use_elliptic_key_signer(private_key=key).sign(folder, signed)
            written.append(signature_of(package, name))
            with atomic_write(written[-1]) as stream:
                stream.write(signed.read_bytes())
    return written


def model_faults(package: Path, key: Path) -> list[str]:
    """Describe what is wrong with the signatures of a package's policies, one sentence each; empty if all are valid.

    Args:
        package: an archive that its own verifier has already checked.
        key: the public key of the expected signer.

    Raises:
        RC1Error: if the library is not installed, or the key is invalid.
    """
    library = _library()
    _check_key(key, signs=False)
    with _policies(package) as (policies, faults):
        for name, folder in policies.items():
            signature = signature_of(package, name)
            if not signature.is_file():
                faults.append(f"{signature.name}: not found next to the package, expected the signature of {name}")
            elif fault := _fault(library, folder, signature, key):
                faults.append(f"{signature.name}: not valid for {name}/{folder.name} with this key ({fault})")
    return faults or ([] if policies else ["the package contains no policy to sign"])


def signature_of(package: Path, name: str) -> Path:
    """Return the path of the signature of a run's policy (`rc1`, `rc1-20250821`)."""
    return package.with_name(f"{package.stem}.{name}.sig")


def _fault(library: Any, folder: Path, signature: Path, key: Path) -> str:
    from cryptography.exceptions import InvalidSignature

    strict = library.verifying.Config().set_hashing_config(_every_file(library))
    try:
        read_regular(signature, _MOST_BYTES_OF_A_SIGNATURE)
        strict.use_elliptic_key_verifier(public_key=key).verify(folder, signature)
    except InvalidSignature:
        return "it was forged or altered"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except RecursionError:
        return "its JSON is nested too deeply"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return str(error).partition("\n")[0].partition(": Expected")[0].strip() or type(error).__name__
    return ""


def _every_file(library: Any) -> Any:
    """Include git's files, which the library skips by default, because somebody could add some."""
    return library.hashing.Config().set_ignored_paths(paths=[], ignore_git_paths=False)


@contextmanager
def _policies(package: Path) -> Iterator[tuple[dict[str, Path], list[str]]]:
    """Extract the policies of a package into a temporary folder, by run.

    Also return a sentence for every file below the checkpoints that no policy's signature would cover.
    """
    found, uncovered = dict[str, Path](), list[str]()
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(package, "r:") as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts
            if parts[:1] != (_CHECKPOINTS,):
                continue
            if len(parts) != _DEPTH or not member.isfile() or ".." in parts:
                uncovered.append(f"{member.name}: not a file of a policy, expected {_CHECKPOINTS}/RUN/STEP/FILE")
                continue
            folder = found.setdefault(parts[1], Path(temporary) / parts[1] / parts[2])
            if folder.name != parts[2]:
                uncovered.append(f"{member.name}: a second step of {parts[1]}, expected only {folder.name}")
                continue
            content = archive.extractfile(member)
            assert content is not None, "it is a file"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / parts[3]).write_bytes(content.read())
        yield dict(sorted(found.items())), uncovered


def _library() -> Any:
    try:
        import model_signing
        from model_signing import hashing, signing, verifying  # noqa: F401  the package does not load these itself
    except ImportError:
        raise RC1Error(
            "signing a model needs the library model-signing; install RC1 with its extra 'model-signing': "
            "pip install 'rc1[model-signing]'"
        ) from None
    return model_signing


def _check_key(path: Path, *, signs: bool) -> None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    option, kind, how = ("signature", "private", _HOW) if signs else ("key", "public", _HOW_PUBLIC)
    named = f"--model-{option} {path}"
    try:
        content = read_regular(path, _MOST_BYTES_OF_A_KEY)
        key = load_pem_private_key(content, password=None) if signs else load_pem_public_key(content)
    except OSError as error:
        raise RC1Error(f"{named}: cannot be read ({error.strerror}), expected a key in PEM") from None
    except TypeError:
        raise RC1Error(f"{named}: found a key protected by a password, expected one without; {how}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise RC1Error(f"{named}: not a {kind} key in PEM; {how}") from None
    if not isinstance(key, EllipticCurvePrivateKey | EllipticCurvePublicKey) or key.curve.name not in CURVES:
        raise RC1Error(f"{named}: expected a key on one of the curves {', '.join(CURVES)}; {how}")
