"""What takes long to make is made once in a run of the suite, by whichever worker wants it first, and copied."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from rc1_lib.run import Run, open_run


def copy_of(name: str, make: Callable[[Path], object], factory: pytest.TempPathFactory) -> Path:
    """A copy, of this worker's own, of the folder that `make` fills.

    The folder is kept in the temporary folder of this very run, so that no other code ever sees it; a worker that wants
    it while another one makes it waits. Whoever copies has a folder that no other worker writes into.

    Args:
        name: of the folder; whoever gives the same name gets the same folder.
        make: fills the folder, whose parent is there.
        factory: pytest's own.
    """
    base = factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made_once"
    home.mkdir(exist_ok=True)
    folder, whole = home / name, home / f"{name}.whole"
    with FileLock(home / f"{name}.lock"):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed half way
            make(folder)
            whole.touch()
    root = factory.mktemp(name) / "workspace"
    shutil.copytree(folder, root)
    return root


def copied(run: Run, root: Path) -> Run:
    """The same run in a copy of its workspace, whose links stay links."""
    shutil.copytree(run.workspace.root, root, symlinks=True)
    return open_run(profile="local", workspace=root, overrides=run.overrides)
