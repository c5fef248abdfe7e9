"""Rounds and ticket killed before any rename: an incomplete preflight never leaves a valid ticket."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rc1_lib.errors import TicketError
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import TICKET, verify_ticket
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_json
from tests.conftest import Verdicts
from tests.forks import Forks, this_interpreter


def rounds_and_ticket(workspace: str, verdicts: str, moment: str, *overrides: str) -> None:
    """Write both rounds' reports and the ticket in a process that is killed before its rename number `moment`."""
    left = iter(range(int(moment) - 1, -1, -1))

    def kill(event: str, _: tuple[object, ...]) -> None:
        if event == "os.rename" and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    run = open_run(profile="local", workspace=Path(workspace), overrides=overrides)
    found: Verdicts = pickle.loads(Path(verdicts).read_bytes())
    sys.addaudithook(kill)
    for number, results in found.items():
        write_round(run, number, results)
    issue_ticket(run)


def kill_before_each_rename(forks: Forks, run: Run, verdicts: Path, stride: int) -> Iterator[int]:
    """Kill before every `stride`th rename until a run completes; yields each moment of a kill."""
    for moment in range(1, 40, stride):
        where = f"{__name__}.rounds_and_ticket"
        code = forks.start(where, run.workspace.root, verdicts, moment, *run.overrides).wait()
        if code == 0:
            return
        assert code == -signal.SIGKILL
        yield moment
    pytest.fail("the ticket was never issued")


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.long)])
def test_killed_rounds_leave_no_valid_ticket_until_they_complete(
    stride: int, passed: Run, verdicts: Verdicts, tmp_path: Path
) -> None:
    for path in PASSED.values():
        passed.workspace.path(path).unlink()
    kept = tmp_path / "verdicts"
    kept.write_bytes(pickle.dumps(verdicts))
    moments = 0
    for _ in kill_before_each_rename(this_interpreter(tmp_path / "forks"), passed, kept, stride):
        moments += 1
        if passed.workspace.path(TICKET).exists():  # only its checksum is missing
            assert not passed.workspace.checksum_path(TICKET).exists()
            verify_ticket(passed)
            continue
        with pytest.raises(TicketError, match=r"preflight/ticket\.json: .*rc1 preflight"):
            verify_ticket(passed)
        for number, path in PASSED.items():
            report = passed.workspace.path(path)
            assert not report.exists() or read_json(report)["round"] == f"round{number}"
    assert moments >= 7 // stride
    verify_ticket(passed)
