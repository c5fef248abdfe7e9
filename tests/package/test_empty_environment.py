"""The wheel alone in an environment: init and preflight work, and training names the missing extra.

It needs the package registry, and takes minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rc1_lib import __version__
from rc1_lib.runtime.libraries import TRAINING
from rc1_lib.workspace.artifacts import PROJECT_ROOT

SETTINGS = ("--reward", "verified", "--set", "pool.n=600", "--set", "gates.resources.min_free_gb=0")
_ABSENT = f"import importlib.util; print([n for n in {TRAINING!r} if importlib.util.find_spec(n)])"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_preflight_on_600_rows_passes_with_only_the_wheel_installed(wheel: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    programs = tmp_path / "empty/bin"

    def run(*arguments: str | Path, at: Path = tmp_path, code: int = 0) -> str:
        done = subprocess.run(arguments, cwd=at, env=environment, capture_output=True, text=True)
        print(f"$ {' '.join(map(str, arguments[:3]))} ...\n{done.stdout[-3000:]}{done.stderr[-500:]}")
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout + done.stderr

    run(sys.executable, "-m", "venv", tmp_path / "empty")
    run(programs / "python", "-m", "pip", "install", "--quiet", "-c", PROJECT_ROOT / "constraints.txt", wheel)
    assert run(programs / "python", "-c", _ABSENT).strip() == "[]", "the core installs no training library"
    rc1 = programs / "rc1"
    run(rc1, "init", "run")
    here = tmp_path / "run"
    output = run(rc1, "preflight", *SETTINGS, at=here)
    assert "pass: rounds 1 and 2, 23 gates; ticket until" in output
    assert "this installation cannot train" in output
    assert "pass: ticket valid" in run(rc1, "ticket", "verify", *SETTINGS, at=here)
    ticket = json.loads((here / "reports/preflight/ticket.json").read_text())
    assert (ticket["commit"], ticket["package"]["version"]) == (None, __version__)
    assert "training needs the extra: pip install 'rc1[train]'" in run(rc1, "train", *SETTINGS, at=here, code=2)
