"""Slow set-ups are made once per run of the suite, by the first worker that needs them, and copied."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from rc1_lib.run import Run, open_run


def copy_of(name: str, make: Callable[[Path], object], factory: pytest.TempPathFactory) -> Path:
    """This worker's own copy of the folder that `make` fills.

    The original is in the temporary folder of this run of the suite, so that no other code sees it. A worker that needs
    it while another one makes it waits. No other worker writes to a copy.

    Args:
        name: the name of the folder; the same name gives the same content.
        make: fills the folder, whose parent exists.
        factory: pytest's fixture.
    """
    base = factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made_once"
    home.mkdir(exist_ok=True)
    folder, whole = home / name, home / f"{name}.whole"
    with FileLock(home / f"{name}.lock"):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)  # left by a worker that failed half way
            make(folder)
            whole.touch()
    root = factory.mktemp(name) / "workspace"
    shutil.copytree(folder, root)
    return root


def copied(run: Run, root: Path) -> Run:
    """The same run in a copy of its workspace; links stay links."""
    shutil.copytree(run.workspace.root, root, symlinks=True)
    return open_run(profile="local", workspace=root, overrides=run.overrides)
