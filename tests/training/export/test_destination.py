"""Where an export goes: whole or not at all, one at a time, and over nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.training.checkpoint.atomic_folder import absent_folder


def test_two_exports_to_one_place_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "out" / "policy"
    with absent_folder(target) as folder:
        (folder / "export.json").write_text("first")
        with pytest.raises(RC1Error, match=r"/out: .*written.*--to"), absent_folder(target):
            pytest.fail("two at once")
        assert not target.exists()
    with pytest.raises(RC1Error, match=r"/out/policy: .*already.*--to"), absent_folder(target):
        pytest.fail("one over the other")
    assert (target / "export.json").read_text() == "first"


def test_what_a_killed_export_left_goes_and_a_users_own_files_stay(tmp_path: Path) -> None:
    left, other, own = (tmp_path / name for name in (".new-policy.abcd1234", ".new-other.abcd1234", "notes"))
    for folder in (left, other, own):
        folder.mkdir()
    with absent_folder(tmp_path / "policy"):
        assert not left.exists()
    assert other.is_dir() and own.is_dir()
