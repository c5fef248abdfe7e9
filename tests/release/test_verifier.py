"""What the verifier sees: every changed byte, every file too many or too few, and archives made to harm."""

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
    """The package, with further entries behind its files."""
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
    """Name -> where its header and where its bytes begin."""
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


def test_two_builds_are_the_same_bytes_and_whole(written: Write) -> None:
    assert packed() == packed()
    assert packed(sign=KEY) == packed(sign=KEY) != packed(sign=OTHER)
    found = verify(written(packed()))
    assert (found.problems, len(found.files), found.signed_by) == ([], 31, "")


def test_any_tar_program_can_unpack_it(written: Write, tmp_path: Path) -> None:
    with tarfile.open(written(packed())) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    assert (tmp_path / "out/reports/07.json").read_bytes() == FILES["reports/07.json"]


def test_thirty_single_bytes_in_thirty_files_are_all_named_at_once(written: Write) -> None:
    content = packed()
    starts = [start for name, (_, start) in places(content).items() if name in FILES]
    found = verify(written(changed(content, *(start + 3 for start in starts))))
    assert len(starts) == 30
    assert [problem.partition(": differs")[0] for problem in found.problems] == sorted(FILES)


def test_thirty_headers_that_are_damaged_are_all_named_and_nothing_else(written: Write) -> None:
    content = packed()
    heads = [head for name, (head, _) in places(content).items() if name in FILES]
    found = verify(written(changed(content, *(head + 129 for head in heads))))
    assert [problem.partition(":")[0] for problem in found.problems] == sorted(FILES)


@pytest.mark.parametrize("part", range(30))
def test_a_single_byte_anywhere_is_named_with_the_file_that_it_stands_in(part: int, written: Write) -> None:
    """Places evenly spread over a signed package: names, sizes, times, contents, padding, signature, end."""
    content = packed(sign=KEY)
    offset = part * (len(content) - 1) // 29
    behind = {name: head for name, (head, _) in places(content).items() if head <= offset}
    name = max(behind, key=lambda one: behind[one])
    try:
        problems = verify(written(changed(content, offset)), pem(KEY)).problems
    except NotAPackage as refusal:  # in the very first header, or a name that nobody may have
        problems = [str(refusal)]
    assert problems != []
    assert any(
        name in problem or "end of the archive" in problem or "begins with" in problem for problem in problems
    ) or (offset < BLOCK)


@pytest.mark.long
def test_every_single_byte_counts(written: Write) -> None:
    content = packed({"a.txt": b"one\n", "b.txt": b"two\n"}, KEY)
    for offset in range(len(content)):
        try:
            assert verify(written(changed(content, offset)), pem(KEY)).problems != [], offset
        except NotAPackage:
            continue


def test_files_that_are_missing_added_or_renamed_are_named(written: Write) -> None:
    manifest_of = packed()
    other = {name: content for name, content in FILES.items() if name not in ("reports/03.json", "reports/04.json")}
    other |= {"reports/three.json": FILES["reports/03.json"], "new.txt": b"new"}
    first = places(manifest_of)["reports/00.json"][0]
    moved = packed(other)
    found = verify(written(manifest_of[:first] + moved[places(moved)["new.txt"][0] :]))
    assert found.problems == [
        "new.txt: was added, since the manifest does not list it",
        "reports/three.json: was renamed, since the manifest calls it reports/03.json",
        "reports/04.json: is missing",
    ]


def test_an_edited_manifest_is_seen_by_its_own_digest(written: Write) -> None:
    content = packed()
    edited = content.replace(b'"key": "0123456789ab"', b'"key": "0123456789ac"')
    assert verify(written(edited)).problems == [
        f"{MANIFEST}: was edited after it was written (its digest does not match)"
    ]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("../../escape", tarfile.REGTYPE, "has an empty part, '.' or '..'"),
        ("reports/../../escape", tarfile.REGTYPE, "has an empty part, '.' or '..'"),
        ("/etc/escape", tarfile.REGTYPE, "not a relative path"),
        ("C:/escape", tarfile.REGTYPE, "not a relative path"),
        ("a\\..\\escape", tarfile.REGTYPE, "characters that are not allowed"),
        ("link", tarfile.SYMTYPE, "is a symbolic link"),
        ("link", tarfile.LNKTYPE, "is a hard link"),
        ("device", tarfile.CHRTYPE, "is a device"),
        ("pipe", tarfile.FIFOTYPE, "is a pipe"),
        ("folder", tarfile.DIRTYPE, "is a folder"),
        ("reports/07.json", tarfile.REGTYPE, "is in the archive twice"),
    ],
)
def test_what_no_package_holds_is_refused_in_a_sentence(name: str, kind: bytes, words: str, written: Write) -> None:
    with pytest.raises(NotAPackage, match=words):
        verify(written(tar((entry(name, kind), b""))))


def test_bombs_are_refused_since_nothing_is_ever_unpacked(written: Write) -> None:
    squeezed = io.BytesIO()
    with tarfile.open(fileobj=squeezed, mode="w:gz") as archive:
        archive.addfile(entry(MANIFEST), io.BytesIO())
    with pytest.raises(NotAPackage, match=r"\btar\b"):
        verify(written(squeezed.getvalue()))
    claimed = packed()
    far = verifier.header("reports/29.json", 8**11 - 1)
    start = places(claimed)["reports/29.json"][0]
    cut = verify(written(claimed[:start] + far + claimed[start + BLOCK :]))
    assert "reports/29.json: is truncated: the archive ends within it" in cut.problems


def test_anything_behind_the_end_and_anything_cut_off_is_seen(written: Write) -> None:
    content = packed()
    assert any("end of the archive" in problem for problem in verify(written(content + b"\0" * BLOCK)).problems)
    assert verify(written(content[:-BLOCK])).problems != []
    assert verify(written(content[: len(content) // 2])).problems != []


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + bytes(600), bytes(10_240)])
def test_what_is_no_archive_is_refused(content: bytes, written: Write) -> None:
    with pytest.raises(NotAPackage):
        verify(written(content))


def test_a_signature_holds_under_its_key_alone(written: Write) -> None:
    package = written(packed(sign=KEY))
    assert (verify(package, pem(KEY)).problems, verify(package, pem(KEY)).signature_checked) == ([], True)
    assert (verify(package).problems, verify(package).signature_checked) == ([], False)
    (problem,) = verify(package, pem(OTHER)).problems
    assert "it was signed by key" in problem
    assert verify(written(packed()), pem(KEY)).problems == ["it is not signed, but a key was given"]


def test_a_forged_signature_is_refused(written: Write) -> None:
    """Signed by somebody else who claims to be the key's owner; and the owner's signature under other files."""
    own, forged = packed(sign=KEY), packed(sign=OTHER)
    name = verifier.key_id(verifier.public_key(pem(KEY))).encode()
    claimed = forged.replace(verifier.key_id(verifier.public_key(pem(OTHER))).encode(), name)
    (problem,) = verify(written(claimed), pem(KEY)).problems
    assert "the signature is not valid" in problem
    other = packed({**FILES, "reports/00.json": b"Z" * 7}, KEY)
    moved = other[: places(other)[ENVELOPE][0]] + own[places(own)[ENVELOPE][0] :]
    assert verify(written(moved), pem(KEY)).problems == [
        f"{ENVELOPE}: the signed statement is about other files than those in the package"
    ]


def test_a_key_that_is_none_is_refused_without_being_repeated(written: Write) -> None:
    for content, words in ((b"-----BEGIN PRIVATE KEY-----\nMC4C", "key is private"), (b"hello", "not an ed25519")):
        with pytest.raises(NotAPackage, match=words):
            verify(written(packed(sign=KEY)), content)


def test_it_needs_the_standard_library_alone(written: Write, tmp_path: Path) -> None:
    """Run as a script by an interpreter that sees no installed package and no environment."""
    script = tmp_path / "verifier.py"
    script.write_bytes(Path(verifier.__file__).read_bytes())
    command = [sys.executable, "-I", "-S", str(script)]
    whole = subprocess.run([*command, str(written(packed()))], capture_output=True, text=True, check=False)
    assert (whole.returncode, whole.stdout.partition(",")[0]) == (0, "whole: 31 files as the manifest says")
    damaged = written(changed(packed(), places(packed())["reports/05.json"][1]))
    refused = subprocess.run([*command, str(damaged)], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout.partition(":")[0]) == (2, "reports/05.json")
