"""One run at a time locks a workspace; the kernel releases the lock with the process, even after a kill."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace
from rc1_lib.workspace.folder import LOCK, check_free, holding

_HOLDER = """
import sys, time
from pathlib import Path
from rc1_lib.workspace.artifacts import Workspace
from rc1_lib.workspace.folder import holding
with holding(Workspace(Path(sys.argv[1])), "a preflight"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_raises_an_error_until_the_first_is_killed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    check_free(workspace)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], cwd=PROJECT_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RC1Error, match=rf"preflight \(process {holder.pid}, .*\)"):
            check_free(workspace)
        holder.kill()
        holder.wait()
    with holding(workspace, "another"):
        assert (tmp_path / LOCK).read_text().startswith("another (process ")


def test_a_read_only_workspace_raises_an_error_that_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RC1Error, match=r"reports: .*permissions"):
        check_free(Workspace(tmp_path))

    def refuse(path: Path, *_: int) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with (
        pytest.raises(RC1Error, match=r"run\.lock: .*Read-only.*change its"),
        holding(Workspace(tmp_path), "a preflight"),
    ):
        pass
