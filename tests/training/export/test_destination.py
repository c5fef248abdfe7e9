"""The destination of an export: written whole or not at all, by one process, without replacing anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.training.checkpoint.atomic_folder import absent_folder


def test_second_export_to_the_same_place_is_rejected(tmp_path: Path) -> None:
    target = tmp_path / "out" / "policy"
    with absent_folder(target) as folder:
        (folder / "export.json").write_text("first")
        with pytest.raises(RC1Error, match=r"/out: .*written.*--to"), absent_folder(target):
            pytest.fail("two exports at once")
        assert not target.exists()
    with pytest.raises(RC1Error, match=r"/out/policy: .*already.*--to"), absent_folder(target):
        pytest.fail("the first export was replaced")
    assert (target / "export.json").read_text() == "first"


def test_leftovers_of_a_killed_export_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    leftover, other, own = (tmp_path / name for name in (".new-policy.abcd1234", ".new-other.abcd1234", "notes"))
    for folder in (leftover, other, own):
        folder.mkdir()
    with absent_folder(tmp_path / "policy"):
        assert not leftover.exists()
    assert other.is_dir() and own.is_dir()
