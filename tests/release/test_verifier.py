"""The verifier finds every changed byte, every added or missing file, and what no package may contain."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rc1_lib.errors import RC1Error
from rc1_lib.release.package import write_archive
from rc1_lib.release.verifier import SIGNATURE, SUMS, verify

FILES = {f"reports/{number:02}.json": bytes([65 + number]) * (300 * number + 7) for number in range(30)}
KEY, OTHER = Ed25519PrivateKey.from_private_bytes(b"k" * 32), Ed25519PrivateKey.from_private_bytes(b"o" * 32)
Write = Callable[[bytes], Path]


def packed(files: dict[str, bytes] = FILES, sign: Ed25519PrivateKey | None = None) -> bytes:
    stream = io.BytesIO()
    write_archive(stream, files, sign)
    return stream.getvalue()


def places(content: bytes) -> dict[str, tuple[int, int]]:
    """Name -> the offsets of its header and of its content."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {one.name: (one.offset, one.offset_data) for one in archive}


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(content: bytes) -> Path:
        path = tmp_path / "package.tar"
        path.write_bytes(content)
        return path

    return write


def changed(content: bytes, *offsets: int) -> bytes:
    body = bytearray(content)
    for offset in offsets:
        body[offset] ^= 1
    return bytes(body)


def problems(package: Path, key: Ed25519PrivateKey | None = None) -> list[str]:
    try:
        return verify(package, key and key.public_key()).problems
    except RC1Error as refusal:
        return [str(refusal)]


def test_package_is_reproducible_and_verifies(written: Write) -> None:
    assert packed() == packed()
    assert packed(sign=KEY) == packed(sign=KEY) != packed(sign=OTHER)
    found = verify(written(packed()))
    assert (found.problems, set(found.files), found.signed) == ([], set(FILES), False)


def test_package_is_checked_without_rc1(written: Write, tmp_path: Path) -> None:
    with tarfile.open(written(packed(sign=KEY))) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "out/key.pub").write_bytes(public)
    signature = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", "-rawin", "-in", SUMS]
    for command in (["sha256sum", "--check", "--strict", SUMS], [*signature, "-sigfile", SIGNATURE]):
        subprocess.run(command, cwd=tmp_path / "out", check=True, capture_output=True)


def test_changed_byte_in_each_of_30_files_names_all_files(written: Write) -> None:
    content = packed()
    starts = [start for name, (_, start) in places(content).items() if name in FILES]
    found = problems(written(changed(content, *(start + 3 for start in starts))))
    assert [problem.partition(": differs")[0] for problem in found] == sorted(FILES)


@pytest.mark.parametrize("bit", range(8))
def test_every_flipped_bit_is_found(written: Write, bit: int) -> None:
    """Names, sizes, times, contents, padding, sums, signature, end."""
    content = packed({"a.txt": b"one\n", "b.txt": b"two\n"}, KEY)
    path = written(content)
    assert problems(path, KEY) == []
    with path.open("r+b", buffering=0) as stream:
        for offset in range(bit, len(content), 8):  # each of eight cases flips another bit of every eighth byte
            for one, value in ((content[offset] ^ 1 << bit, True), (content[offset], False)):
                stream.seek(offset)
                stream.write(bytes([one]))
                if value:
                    assert problems(path, KEY) != [], (offset, bit)


def test_missing_added_and_renamed_files_are_named(written: Write) -> None:
    original = packed()
    other = {name: content for name, content in FILES.items() if name not in ("reports/03.json", "reports/04.json")}
    other |= {"reports/three.json": FILES["reports/03.json"], "new.txt": b"new"}
    first = places(original)["reports/00.json"][0]
    changed_files = packed(other)
    found = problems(written(original[:first] + changed_files[places(changed_files)["new.txt"][0] :]))
    assert [problem.partition(",")[0] for problem in found] == [
        f"new.txt: is not listed in {SUMS}", "reports/03.json: is missing", "reports/04.json: is missing",
        f"reports/three.json: is not listed in {SUMS}",
    ]  # fmt: skip


def entry(name: str, kind: bytes) -> bytes:
    one = tarfile.TarInfo(name)
    one.type, one.mode, one.linkname = kind, 0o644, "/etc/passwd" if kind != tarfile.REGTYPE else ""
    return one.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../../escape", tarfile.REGTYPE),
        ("/etc/escape", tarfile.REGTYPE),
        ("a\\..\\escape", tarfile.REGTYPE),
        ("link", tarfile.SYMTYPE),
        ("device", tarfile.CHRTYPE),
        ("reports/07.json", tarfile.REGTYPE),
    ],
)
def test_entry_that_no_package_may_contain_is_refused(name: str, kind: bytes, written: Write) -> None:
    content = packed()
    end = len(content.rstrip(b"\0")) // 512 * 512 + 512
    with pytest.raises(RC1Error, match=r"is not what `rc1 release` writes: (the header at byte|.* is in it twice)"):
        verify(written(content[:end] + entry(name, kind) + content[end:]))


def test_trailing_bytes_and_truncation_are_found(written: Write) -> None:
    content = packed()
    for other in (content + b"\0" * 512, content[:-512], content[: len(content) // 2]):
        with pytest.raises(RC1Error, match="the end of "):
            verify(written(other))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + bytes(600), b"\x1f\x8b" * 600])
def test_file_that_is_not_an_archive_is_refused(content: bytes, written: Write) -> None:
    with pytest.raises(RC1Error, match="is not what `rc1 release` writes"):
        verify(written(content))


def test_signature_is_valid_for_its_key_and_files_only(written: Write) -> None:
    package = written(packed(sign=KEY))
    found = verify(package, KEY.public_key())
    assert (found.problems, found.signed, found.signature_checked) == ([], True, True)
    assert (verify(package).problems, verify(package).signature_checked) == ([], False)
    (problem,) = problems(package, OTHER)
    assert "not a signature" in problem
    (problem,) = problems(written(packed()), KEY)
    assert "not signed" in problem
    own, other = packed(sign=KEY), packed({**FILES, "reports/00.json": b"Z" * 7}, KEY)
    moved = other[: places(other)[SIGNATURE][0]] + own[places(own)[SIGNATURE][0] :]
    (problem,) = problems(written(moved), KEY)
    assert "not a signature" in problem
