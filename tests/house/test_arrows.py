"""Imports follow the order of the rooms, without cycles: `[tool.importlinter]` in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rc1_lib.workspace.artifacts import PROJECT_ROOT


def test_rooms_import_only_rooms_below_them() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=PROJECT_ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
