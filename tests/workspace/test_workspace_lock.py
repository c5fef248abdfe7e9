"""A workspace is held by one run; the kernel lets it go with the process, even a killed one."""

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


def test_a_second_run_is_refused_until_the_first_is_gone_even_by_a_kill(tmp_path: Path) -> None:
    place = Workspace(tmp_path)
    check_free(place)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], cwd=PROJECT_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RC1Error, match=rf"preflight \(process {holder.pid}, .*\)"):
            check_free(place)
        holder.kill()
        holder.wait()
    with holding(place, "another"):
        assert (tmp_path / LOCK).read_text().startswith("another (process ")


def test_a_lock_that_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir(parents=True)
    with pytest.raises(RC1Error, match=r"\.run\.lock: "), holding(Workspace(tmp_path), "a preflight"):
        pass


def test_a_workspace_that_cannot_be_written_is_said_so_before_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RC1Error, match=r"reports: cannot be written .*; change its permissions"):
        check_free(Workspace(tmp_path))

    def refuse(path: Path, *_: int) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with (
        pytest.raises(RC1Error, match=r"run\.lock: .*Read-only.*change its"),
        holding(Workspace(tmp_path), "a preflight"),
    ):
        pass
