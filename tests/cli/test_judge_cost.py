"""`judge-cost`, and the confirmation of costs above `judge.ask_above_usd`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from rc1_lib.judge.budget import price_list
from tests.judge.bench import overrides
from tests.judge_server import Behaviour, running

from .conftest import SMALL, Rc1, judge_at, settings


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_judge_cost_lists_live_judges_and_says_when_no_judge_is_called(rc1: Rc1, workspace: Path) -> None:
    done = rc1("judge-cost", "--workspace", workspace, *SMALL, "--json")
    body = json.loads(done.out)
    assert done.code == 0 and [one["model"] for one in body["models"]] == [one.model for one in price_list()]
    for one in body["models"]:
        single, triple, smaller = one["usd"].values()
        assert 3 * single["value"] == pytest.approx(triple["value"]) and smaller["value"] <= triple["value"]
        assert single["low"] < single["value"] < single["high"]
    none = rc1("judge-cost", "--workspace", workspace, *SMALL, "--reward", "verified")
    assert none.code == 0 and "no judge is called" in none.out


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


def test_unknown_price_is_shown_as_unknown(rc1: Rc1, workspace: Path) -> None:
    live = settings(overrides("http://127.0.0.1:9/v1"))
    done = rc1("judge-cost", "--workspace", workspace, *SMALL, *live)
    assert done.code == 0 and "unknown" in done.out and "set judge.prices=" in done.out
