"""The confirmation of a judge's cost above `judge.ask_above_usd`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.judge_server import Behaviour, running

from .conftest import SMALL, Rc1, judge_at


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("typed", [None, "n\n", ""], ids=["no terminal", "no", "end of input"])
def test_calibration_without_confirmed_costs_makes_no_call(
    rc1: Rc1, workspace: Path, monkeypatch: pytest.MonkeyPatch, typed: str | None
) -> None:
    with running(Behaviour()) as server:
        live = judge_at(server)
        priced = ("--set", "judge.prices={input: 1, output: 1}", "--set", "judge.ask_above_usd=0.001")
        if typed is not None:
            monkeypatch.setattr(sys, "stdin", Keyboard(typed))
            monkeypatch.setattr("rc1_lib.cli.plan.terminal", Keyboard)
        done = rc1("calibrate", "--workspace", workspace, *SMALL, *live, *priced)
        assert done.code == 2 and server.stats().requests == 0
        assert "reward_hacking" in done.out and "bounds, no replies" in done.out
        message = "judge.ask_above_usd is 0.001" if typed is None else "you declined the cost of the judge; no call"
        assert message in done.err
        if typed is not None:
            assert "Go on? [y/N]" in done.err
