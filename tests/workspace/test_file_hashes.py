"""An unchanged file is hashed once, and a changed one again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.workspace import file_hashes
from rc1_lib.workspace.file_hashes import forget_hashes, hashes_known, sha256_file, sha256_known


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by one each time a file's bytes are read."""
    found: list[str] = []
    digest = hashlib.file_digest

    def counting_digest(*given: object) -> object:
        found.append("read")
        return digest(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(hashlib, "file_digest", counting_digest)
    return found


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """New files count as old, because a test cannot set a ctime."""
    monkeypatch.setattr(file_hashes, "SETTLED_S", -1e9)


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def after_a_tick(path: Path, change: Callable[[], object]) -> None:
    """Change a file until its ctime differs from the last one."""
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:
        change()


def test_an_unchanged_file_is_read_once_inside_the_block_and_each_time_outside(
    tmp_path: Path, reads: list[str], settled: None
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    with hashes_known():
        assert {sha256_known(path) for _ in range(3)} == {sha256_of(b"a row")} and len(reads) == 1
        assert sha256_file(path) == sha256_of(b"a row") and len(reads) == 2, "sha256_file always reads the file"
        forget_hashes()
        assert sha256_known(path) == sha256_of(b"a row") and len(reads) == 3
    with hashes_known():
        sha256_known(path)
    for _ in range(2):
        sha256_known(path)
    assert len(reads) == 6


def test_an_edit_that_restores_size_and_mtime_is_detected(tmp_path: Path, settled: None) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    written = path.stat().st_mtime_ns

    def edit() -> None:
        path.write_bytes(b"b row")
        os.utime(path, ns=(written, written))

    with hashes_known():
        assert sha256_known(path) == sha256_of(b"a row")
        after_a_tick(path, edit)
        found = path.stat()
        assert (found.st_size, found.st_mtime_ns) == (5, written)
        assert sha256_known(path) == sha256_of(b"b row")


def test_the_hash_of_a_just_changed_file_is_not_cached(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change within one tick of the file system's clock does not change the ctime."""
    monkeypatch.setattr(file_hashes, "SETTLED_S", 1e9)  # on a busy machine the real delay may pass between two lines
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    with hashes_known():
        for _ in range(3):
            sha256_known(path)
    assert len(reads) == 3


def test_the_hash_of_a_file_that_changes_while_it_is_read_is_not_cached(
    tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a row")
    digest = hashlib.file_digest

    def change_while_reading(*given: object) -> object:
        found = digest(*given)  # type: ignore[arg-type]
        after_a_tick(path, lambda: path.write_bytes(b"b row"))
        return found

    with hashes_known():
        monkeypatch.setattr(hashlib, "file_digest", change_while_reading)
        assert sha256_known(path) == sha256_of(b"a row")
        monkeypatch.setattr(hashlib, "file_digest", digest)
        assert sha256_known(path) == sha256_of(b"b row")
