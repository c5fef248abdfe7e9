"""Standard streams that are closed, that lost their reader or lead to a full disk do not change the exit code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session
from rc1_lib.cli.streams import lasting_streams, visible
from rc1_lib.cli.tables import table
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.shares import share

from .conftest import call

FULL = Path("/dev/full")
RC1 = "from rc1_lib.cli import main; main()"


HIDING = "\x1b[2K\x1b[8m\x9b1A\rverdict\x07 \u202egood"
"""Erases a line, hides what follows, goes up a line, returns, rings, and reorders what is read."""
SHOWN = r"\x1b[2K\x1b[8m\x9b1A\rverdict\x07 \u202egood"


def test_only_control_characters_are_escaped() -> None:
    assert visible(HIDING) == SHOWN
    plain = "two\tcolumns\nÖsterreich 数学 नमस्ते 👩‍🎓"
    assert visible(plain) == plain


def test_text_of_a_file_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A sentence, a cell, a title, and an error; the colours that RC1 adds stay."""
    session = Session(Options(workspace=tmp_path), sys.stdout)
    session.show(HIDING, table(HIDING, ("head",), [(HIDING,), (Text("passed", "green"),)]))
    out = capsys.readouterr().out
    assert out.count(r"\x1b[2K\x1b[8m\x9b1A\r") == 3
    assert call("ckpt", "list", "--workspace", str(tmp_path / HIDING.replace("/", "")), "--set", HIDING) == 2
    shown = capsys.readouterr()
    for text in (out, shown.out, shown.err):
        assert not [mark for mark in "\x1b\x9b\r\x07\u202e" if mark in text]


def test_output_of_a_training_is_in_its_log_too(tmp_path: Path) -> None:
    assert call("train", "--workspace", str(tmp_path)) == 2
    (own,) = tmp_path.glob("logs/ops_*.log")
    log = (tmp_path / "logs/train.log").read_text()
    assert log == own.read_text() and "there is no ticket" in log
    call("ticket", "show", "--workspace", str(tmp_path))
    assert (tmp_path / "logs/train.log").read_text() == log


@pytest.mark.parametrize("encoding", ["gbk", "ascii"])
def test_nothing_that_is_printed_ends_a_command(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    workspace, strange = tmp_path / "ö 数 🎓", "ö 数 🎓 \udcff"
    with lasting_streams():
        print(strange)
        print(strange, file=sys.stderr)
        Session(Options(workspace=tmp_path), sys.stdout).show(table(strange, ("head",), [(strange,)]))
    assert call("config", "verify", "--workspace", str(workspace)) == 0
    assert call("ticket", "verify", "--workspace", str(workspace)) == 2
    printed = len(streams[0].buffer.getvalue())  # type: ignore[attr-defined]
    assert call("init", "--json", str(workspace / "run")) == 0
    document = json.loads(streams[0].buffer.getvalue()[printed:].decode(encoding))  # type: ignore[attr-defined]
    assert document["folder"] == str(workspace / "run")


def ended(command: str, streams: str, workspace: Path) -> subprocess.CompletedProcess[str]:
    """Run the program in its own process, with streams redirected by a shell."""
    line = f'exec "$0" -c "$1" {command} --workspace "$2" {streams}'
    given = ["sh", "-c", line, sys.executable, RC1, str(workspace)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.run(given, env=environment, capture_output=True, text=True, timeout=120, check=False)


def failure_files(workspace: Path) -> list[Path]:
    return [*workspace.glob("reports/ERROR_*"), *workspace.glob("reports/rc1/FAIL_*")]


@pytest.mark.parametrize(("command", "code"), [("config verify", 0), ("ticket revoke --reason old", 2)])
@pytest.mark.parametrize("streams", share([">&-", "2>&-", "<&- >&- 2>&-"], ">&-"))
def test_closed_streams_do_not_change_the_exit_code(tmp_path: Path, command: str, code: int, streams: str) -> None:
    done = ended(command, streams, tmp_path)
    assert done.returncode == code, done.stderr
    assert failure_files(tmp_path) == []
    (log,) = tmp_path.glob("logs/ops_*.log")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith(f"--workspace {tmp_path}") and len(lines) > 1, "the log has the output of a closed stream"


@pytest.mark.parametrize(("command", "code"), [("config verify", 0), ("--help", 0)])
def test_command_succeeds_when_its_reader_closes_the_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with open(writes, "w", encoding="utf-8") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        words = command.split()
        assert call(*words, *(() if command == "--help" else ("--workspace", str(tmp_path)))) == code
    assert failure_files(tmp_path) == []


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["config verify --json", "--help"])
def test_full_disk_of_stdout_is_a_fault_that_names_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with FULL.open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        words = command.split()
        assert call(*words, *(() if command == "--help" else ("--workspace", str(tmp_path)))) == 1
    stderr = capsys.readouterr().err
    assert "FATAL: standard output: cannot be written (No space left on device)" in stderr and "Traceback" not in stderr


def test_broken_pipe_inside_a_command_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as of a worker that ended. It was once taken for a reader that closed stdout, and not reported."""

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("rc1_lib.cli.session.Session.open", broken)
    assert call("config", "verify", "--workspace", str(tmp_path)) == 1
    assert "FATAL: [Errno 32] Broken pipe" in capsys.readouterr().err
    assert len(failure_files(tmp_path)) == 2
