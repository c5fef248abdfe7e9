"""The verifier detects every changed byte, every added or missing file, and malicious archives."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rc1_lib.release import verifier
from rc1_lib.release.package import write_archive
from rc1_lib.release.verifier import BLOCK, ENVELOPE, MANIFEST, NotAPackage, verify

FILES = {f"reports/{number:02}.json": bytes([65 + number]) * (300 * number + 7) for number in range(30)}
FACTS = {"key": "0123456789ab"}
KEY, OTHER = Ed25519PrivateKey.from_private_bytes(b"k" * 32), Ed25519PrivateKey.from_private_bytes(b"o" * 32)
Write = Callable[[bytes], Path]


def packed(files: dict[str, bytes] = FILES, sign: Ed25519PrivateKey | None = None) -> bytes:
    stream = io.BytesIO()
    write_archive(stream, files, FACTS, sign)
    return stream.getvalue()


def pem(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """The package, with further entries after its files."""
    stream = io.BytesIO(packed())
    with tarfile.open(fileobj=stream, mode="a:", format=tarfile.USTAR_FORMAT) as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    one = tarfile.TarInfo(name)
    one.type, one.mode, one.linkname = kind, 0o644, "/etc/passwd" if kind != tarfile.REGTYPE else ""
    return one


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


def test_package_is_reproducible_and_verifies(written: Write) -> None:
    assert packed() == packed()
    assert packed(sign=KEY) == packed(sign=KEY) != packed(sign=OTHER)
    found = verify(written(packed()))
    assert (found.problems, len(found.files), found.signed_by) == ([], 31, "")


def test_package_is_a_plain_tar(written: Write, tmp_path: Path) -> None:
    with tarfile.open(written(packed())) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    assert (tmp_path / "out/reports/07.json").read_bytes() == FILES["reports/07.json"]


def test_changed_byte_in_each_of_30_files_names_all_files(written: Write) -> None:
    content = packed()
    starts = [start for name, (_, start) in places(content).items() if name in FILES]
    found = verify(written(changed(content, *(start + 3 for start in starts))))
    assert len(starts) == 30
    assert [problem.partition(": differs")[0] for problem in found.problems] == sorted(FILES)


def test_damaged_headers_of_30_files_name_exactly_these_files(written: Write) -> None:
    content = packed()
    heads = [head for name, (head, _) in places(content).items() if name in FILES]
    found = verify(written(changed(content, *(head + 129 for head in heads))))
    assert [problem.partition(":")[0] for problem in found.problems] == sorted(FILES)


@pytest.mark.parametrize("part", range(30))
def test_changed_byte_anywhere_is_reported_with_its_file(part: int, written: Write) -> None:
    """Offsets spread evenly over a signed package: names, sizes, times, contents, padding, signature, end."""
    content = packed(sign=KEY)
    offset = part * (len(content) - 1) // 29
    before = {name: head for name, (head, _) in places(content).items() if head <= offset}
    name = max(before, key=lambda one: before[one])
    try:
        problems = verify(written(changed(content, offset)), pem(KEY)).problems
    except NotAPackage as error:  # in the first header, or the byte makes a name that is not allowed
        problems = [str(error)]
    assert problems != []
    assert any(
        name in problem or "end of the archive" in problem or "begins with" in problem for problem in problems
    ) or (offset < BLOCK)


@pytest.mark.long
def test_every_changed_byte_is_detected(written: Write) -> None:
    content = packed({"a.txt": b"one\n", "b.txt": b"two\n"}, KEY)
    for offset in range(len(content)):
        try:
            assert verify(written(changed(content, offset)), pem(KEY)).problems != [], offset
        except NotAPackage:
            continue


def test_missing_added_and_renamed_files_are_named(written: Write) -> None:
    original = packed()
    other = {name: content for name, content in FILES.items() if name not in ("reports/03.json", "reports/04.json")}
    other |= {"reports/three.json": FILES["reports/03.json"], "new.txt": b"new"}
    first = places(original)["reports/00.json"][0]
    changed_files = packed(other)
    found = verify(written(original[:first] + changed_files[places(changed_files)["new.txt"][0] :]))
    assert [problem.partition(", since")[0] for problem in found.problems] == [
        "new.txt: was added", "reports/three.json: was renamed", "reports/04.json: is missing",
    ]  # fmt: skip


def test_edited_manifest_fails_its_own_digest(written: Write) -> None:
    content = packed()
    edited = content.replace(b'"key": "0123456789ab"', b'"key": "0123456789ac"')
    (problem,) = verify(written(edited)).problems
    assert problem.startswith(f"{MANIFEST}: was edited") and "digest" in problem


@pytest.mark.parametrize(
    ("name", "kind", "fault"),
    [
        ("../../escape", tarfile.REGTYPE, r"'\.\.'"),
        ("reports/../../escape", tarfile.REGTYPE, r"'\.\.'"),
        ("/etc/escape", tarfile.REGTYPE, "relative path"),
        ("C:/escape", tarfile.REGTYPE, "relative path"),
        ("a\\..\\escape", tarfile.REGTYPE, "characters"),
        ("link", tarfile.SYMTYPE, "symbolic link"),
        ("link", tarfile.LNKTYPE, "hard link"),
        ("device", tarfile.CHRTYPE, "device: .* device"),
        ("pipe", tarfile.FIFOTYPE, "pipe: .* pipe"),
        ("folder", tarfile.DIRTYPE, "folder: .* folder"),
        ("reports/07.json", tarfile.REGTYPE, "reports/07.json: .* twice"),
    ],
)
def test_unsafe_archive_entry_is_rejected(name: str, kind: bytes, fault: str, written: Write) -> None:
    with pytest.raises(NotAPackage, match=fault):
        verify(written(tar((entry(name, kind), b""))))


def test_compressed_and_oversized_archives_are_rejected_unread(written: Write) -> None:
    compressed = io.BytesIO()
    with tarfile.open(fileobj=compressed, mode="w:gz") as archive:
        archive.addfile(entry(MANIFEST), io.BytesIO())
    with pytest.raises(NotAPackage, match=r"\btar\b"):
        verify(written(compressed.getvalue()))
    content = packed()
    oversized = verifier.header("reports/29.json", 8**11 - 1)
    start = places(content)["reports/29.json"][0]
    found = verify(written(content[:start] + oversized + content[start + BLOCK :]))
    assert any(problem.startswith("reports/29.json: is truncated") for problem in found.problems)


def test_trailing_bytes_and_truncation_are_detected(written: Write) -> None:
    content = packed()
    assert any("end of the archive" in problem for problem in verify(written(content + b"\0" * BLOCK)).problems)
    assert verify(written(content[:-BLOCK])).problems != []
    assert verify(written(content[: len(content) // 2])).problems != []


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + bytes(600), bytes(10_240)])
def test_file_that_is_not_an_archive_is_rejected(content: bytes, written: Write) -> None:
    with pytest.raises(NotAPackage):
        verify(written(content))


def test_signature_is_valid_for_its_key_only(written: Write) -> None:
    package = written(packed(sign=KEY))
    assert (verify(package, pem(KEY)).problems, verify(package, pem(KEY)).signature_checked) == ([], True)
    assert (verify(package).problems, verify(package).signature_checked) == ([], False)
    (problem,) = verify(package, pem(OTHER)).problems
    assert "signed by key" in problem
    (problem,) = verify(written(packed()), pem(KEY)).problems
    assert "not signed" in problem


def test_forged_signature_is_rejected(written: Write) -> None:
    """Signed with another key under the owner's key id; and the owner's signature over other files."""
    own, forged = packed(sign=KEY), packed(sign=OTHER)
    name = verifier.key_id(verifier.public_key(pem(KEY))).encode()
    claimed = forged.replace(verifier.key_id(verifier.public_key(pem(OTHER))).encode(), name)
    (problem,) = verify(written(claimed), pem(KEY)).problems
    assert "signature is not valid" in problem
    other = packed({**FILES, "reports/00.json": b"Z" * 7}, KEY)
    moved = other[: places(other)[ENVELOPE][0]] + own[places(own)[ENVELOPE][0] :]
    (problem,) = verify(written(moved), pem(KEY)).problems
    assert problem.startswith(f"{ENVELOPE}: ") and "other files" in problem


def test_invalid_key_is_rejected(written: Write) -> None:
    for key, fault in ((b"-----BEGIN PRIVATE KEY-----\nMC4C", "key is private"), (b"hello", "ed25519")):
        with pytest.raises(NotAPackage, match=fault):
            verify(written(packed(sign=KEY)), key)


def test_verifier_script_needs_only_the_standard_library(written: Write, tmp_path: Path) -> None:
    """Run it as a script in an interpreter without installed packages and environment."""
    script = tmp_path / "verifier.py"
    script.write_bytes(Path(verifier.__file__).read_bytes())
    command = [sys.executable, "-I", "-S", str(script)]
    whole = subprocess.run([*command, str(written(packed()))], capture_output=True, text=True, check=False)
    assert (whole.returncode, whole.stdout.partition(",")[0]) == (0, "whole: 31 files as the manifest says")
    damaged = written(changed(packed(), places(packed())["reports/05.json"][1]))
    failed = subprocess.run([*command, str(damaged)], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stdout.partition(":")[0]) == (2, "reports/05.json")
