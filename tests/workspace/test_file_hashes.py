"""A file is read again wherever it was touched, and once where it was not."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.workspace import file_hashes
from rc1_lib.workspace.file_hashes import forget_hashes, hashes_known, sha256_file, sha256_known


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one whenever a file's bytes are read."""
    found: list[str] = []
    digest = hashlib.file_digest

    def look(*given: object) -> object:
        found.append("read")
        return digest(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", look)
    return found


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of this moment count as old: nobody sets a ctime."""
    monkeypatch.setattr(file_hashes, "SETTLED_S", -1e9)


def of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def after_a_tick(path: Path, change: Callable[[], object]) -> None:
    """Change a file until the file system's clock has gone on since it was last changed."""
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:
        change()


def test_what_lies_as_it_was_is_read_once_and_outside_the_block_every_time(
    tmp_path: Path, read: list[str], settled: None
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    with hashes_known():
        assert {sha256_known(path) for _ in range(3)} == {of(b"a row")} and len(read) == 1
        assert sha256_file(path) == of(b"a row") and len(read) == 2, "who asks for the file itself reads it"
        forget_hashes()
        assert sha256_known(path) == of(b"a row") and len(read) == 3
    with hashes_known():
        sha256_known(path)
    for _ in range(2):
        sha256_known(path)
    assert len(read) == 6


def test_an_edit_whose_size_and_time_were_put_back_is_seen(tmp_path: Path, settled: None) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    written = path.stat().st_mtime_ns

    def edit() -> None:
        path.write_bytes(b"b row")
        os.utime(path, ns=(written, written))

    with hashes_known():
        assert sha256_known(path) == of(b"a row")
        after_a_tick(path, edit)
        found = path.stat()
        assert (found.st_size, found.st_mtime_ns) == (5, written)
        assert sha256_known(path) == of(b"b row")


def test_another_file_in_its_place_is_seen_whatever_times_it_bears(tmp_path: Path, settled: None) -> None:
    path, other = tmp_path / "rows.jsonl", tmp_path / "other"
    path.write_bytes(b"a row")
    other.write_bytes(b"b row")
    with hashes_known():
        assert (sha256_known(path), sha256_known(other)) == (of(b"a row"), of(b"b row"))
        other.replace(path)
        assert sha256_known(path) == of(b"b row")
        path.unlink()
        with pytest.raises(RC1Error, match=r"\(No such file"):
            sha256_known(path)


def test_what_was_changed_a_moment_ago_is_believed_by_nobody(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change within one step of the file system's clock leaves no mark."""
    monkeypatch.setattr(file_hashes, "SETTLED_S", 1e9)  # a busy machine may let the real ones pass between two lines
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    with hashes_known():
        for _ in range(3):
            sha256_known(path)
    assert len(read) == 3


def test_what_is_written_while_it_is_read_is_not_remembered(
    tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    digest = hashlib.file_digest

    def slowly(*given: object) -> object:
        found = digest(*given)  # type: ignore[arg-type]
        after_a_tick(path, lambda: path.write_bytes(b"b row"))
        return found

    with hashes_known():
        monkeypatch.setattr(hashlib, "file_digest", slowly)
        assert sha256_known(path) == of(b"a row")
        monkeypatch.setattr(hashlib, "file_digest", digest)
        assert sha256_known(path) == of(b"b row")


def test_a_task_in_another_thread_knows_what_its_flow_knows_and_no_other_thread_does(
    tmp_path: Path, read: list[str], settled: None
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    with hashes_known():
        sha256_known(path)
        for context, reads in ((copy_context(), 1), (None, 2)):
            target = (lambda: sha256_known(path)) if context is None else (lambda c=context: c.run(sha256_known, path))
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
            assert len(read) == reads
