"""What keeps tests from changing the project."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT

SHIPPED = PROJECT_ROOT / "configs/local.yaml"
NEW = PROJECT_ROOT / "logs_of_a_test"


@pytest.mark.parametrize(
    "change",
    [
        lambda: SHIPPED.write_text(""),
        lambda: SHIPPED.unlink(),
        lambda: SHIPPED.rename(NEW),
        lambda: NEW.mkdir(),
        lambda: sqlite3.connect(NEW),
    ],
)
def test_change_of_a_project_file_fails_before_it_happens(change: Callable[[], object]) -> None:
    before = SHIPPED.read_bytes()
    with pytest.raises(AssertionError, match="a test would change a file of the project"):
        change()
    assert SHIPPED.read_bytes() == before and not NEW.exists()


def test_other_folders_caches_and_other_processes_are_free(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("")
    (tmp_path / "a").rename(tmp_path / "d")
    shutil.rmtree(tmp_path / "d")
    (PROJECT_ROOT / "tests/__pycache__").mkdir(exist_ok=True)
    at = NEW.with_name(f"{NEW.name}_{tmp_path.name}")
    code = "import sys, pathlib; at = pathlib.Path(sys.argv[1]); at.mkdir(); at.rmdir()"
    subprocess.run([sys.executable, "-c", code, str(at)], check=True)
