"""The state of an installed package: altered, deleted and added files are detected."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from rc1_lib.provenance.code import read_package

FILES = {"rc1_lib/__init__.py": b"", "rc1_lib/_project/configs/local.yaml": b"n: 1\n", "flows/train.py": b"pass\n"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    lines = []
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    lines += ["rc1-9.9.dist-info/RECORD,,", "../../../bin/rc1,sha256=x,1", "rc1_lib/__pycache__/__init__.cpython.pyc,,"]
    record = tmp_path / "rc1-9.9.dist-info/RECORD"
    record.parent.mkdir()
    record.write_text("\n".join(lines) + "\n")
    record.with_name("METADATA").write_text("Metadata-Version: 2.4\nName: rc1\nVersion: 9.9\n")
    return tmp_path


def test_unmodified_installation_has_no_changes(site: Path) -> None:
    found = read_package(site)
    assert (found.version, found.changed, len(found.sha256)) == ("9.9", (), 64)
    (site / "rc1_lib/__pycache__").mkdir()
    (site / "rc1_lib/__pycache__/other.pyc").write_bytes(b"made by Python")
    assert read_package(site) == found


def test_altered_deleted_and_added_files_are_reported_and_change_the_hash(site: Path) -> None:
    whole = read_package(site)
    (site / "rc1_lib/_project/configs/local.yaml").write_bytes(b"n: 2\n")
    altered = read_package(site)
    assert altered.changed == (" M rc1_lib/_project/configs/local.yaml",)
    (site / "flows/train.py").unlink()
    (site / "flows/other.py").write_bytes(b"")
    assert read_package(site).changed == (
        " D flows/train.py", " M rc1_lib/_project/configs/local.yaml", "?? flows/other.py",
    )  # fmt: skip
    assert len({state.sha256 for state in (whole, altered, read_package(site))}) == 3
