"""Flows on the small pool, each in its own workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect import State

from flows.preflight import preflight
from rc1_lib.checks import at_least
from rc1_lib.gates import gate_list
from rc1_lib.gates.gate_list import BY_NAME
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from tests.once import copied

from .trainings import Ended
from .trainings import start as start_training


@pytest.fixture(scope="session", autouse=True)
def _prefect(prefect_server: None) -> None:
    """Every test of this folder uses the server."""


def start(run: Run, **parameters: Any) -> State[Any]:
    """Run the preflight on a run's workspace, with its overrides and existing files."""
    chosen = {"build": "never", "overrides": list(run.overrides), "workspace": str(run.workspace.root)}
    state: State[Any] = preflight(**{**chosen, **parameters}, return_state=True)
    return state


@pytest.fixture
def run_flow() -> Callable[..., State[Any]]:
    """`run_flow(run, build="auto", ...)` returns the flow's final state."""
    return start


TRIVIAL = ("git", "resources", "length", "anti_simulation", "judge_drift")
"""Gates that always pass: one or more in each round, and those that the small pool's configuration waives."""


def keep_gates(monkeypatch: pytest.MonkeyPatch, *names: str, trivial: Iterable[str] = TRIVIAL) -> None:
    """Restrict rounds to these gates, plus some that pass without reading anything."""
    for name in set(trivial) - set(names):
        given = GateResult(name, checks=(at_least("set by a test", 1, 1, ""),))
        passes = replace(BY_NAME[name], gate=lambda _, __, given=given: given, reads_world=True)
        monkeypatch.setitem(BY_NAME, name, passes)
    chosen = tuple(BY_NAME[spec.name] for spec in gate_list.PREFLIGHT if spec.name in {*names, *trivial})
    monkeypatch.setattr(gate_list, "PREFLIGHT", chosen)


@pytest.fixture
def only_gates(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`only_gates("weights")`: rounds have these gates and the `TRIVIAL` ones, for tests of a flow's order."""

    def choose(*names: str) -> None:
        keep_gates(monkeypatch, *names)

    return choose


@pytest.fixture(scope="session")
def passed_preflight(built: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, State[Any]]:
    """A workspace after a passed preflight, and the flow's state. Read-only: to write, take `preflighted_copy`."""
    run = copied(built, tmp_path_factory.mktemp("passed_preflight") / "workspace")
    return run, start(run)


@pytest.fixture
def preflighted_copy(passed_preflight: tuple[Run, State[Any]], tmp_path: Path) -> Run:
    """A copy of the workspace after a passed preflight, with its ticket."""
    run, _ = passed_preflight
    return copied(run, tmp_path / "workspace")


@pytest.fixture(scope="session")
def done(opened: Run, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """An undisturbed training. Read-only: to write, take `copied`."""
    run = copied(opened, tmp_path_factory.mktemp("done") / "workspace")
    return Ended(run, start_training(run))
