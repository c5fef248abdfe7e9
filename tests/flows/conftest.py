"""Flows run on the small pool in workspaces of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect import State
from prefect.client.orchestration import get_client

from flows.preflight import preflight
from rc1_lib.checks import at_least
from rc1_lib.preflight import gate_list
from rc1_lib.preflight.gate_list import BY_NAME
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from tests.once import copied

from .trainings import Ended
from .trainings import start as start_training


@pytest.fixture(scope="session", autouse=True)
def _prefect(prefect_server: None) -> None:
    """Every test here has the server, whether or not it says so."""


@pytest.fixture
def no_automation_left() -> Iterator[None]:
    """No automation outlives its test: the server would go on counting the events of every flow in its database."""
    yield
    with get_client(sync_client=True) as client:
        for one in client.read_automations():
            client.delete_automation(one.id)


def start(run: Run, **parameters: Any) -> State[Any]:
    """Run the preflight on a run's workspace, with its overrides, on the files that are there."""
    chosen = {"build": "never", "overrides": list(run.overrides), "workspace": str(run.workspace.root)}
    state: State[Any] = preflight(**{**chosen, **parameters}, return_state=True)
    return state


@pytest.fixture
def run_flow() -> Callable[..., State[Any]]:
    """`run_flow(run, build="auto", ...)` gives the flow's final state."""
    return start


BESIDE = ("git", "resources", "length", "anti_simulation", "judge_drift")
"""Some in every round, and those that the small pool's configuration waives."""


def stand(monkeypatch: pytest.MonkeyPatch, *names: str, beside: Iterable[str] = BESIDE) -> None:
    """Let rounds have these gates, and some beside them that pass without a look at anything."""
    for name in set(beside) - set(names):
        given = GateResult(name, checks=(at_least("given away by a test", 1, 1, ""),))
        looks = replace(BY_NAME[name], gate=lambda _, __, given=given: given, reads_world=True)
        monkeypatch.setitem(BY_NAME, name, looks)
    chosen = tuple(BY_NAME[spec.name] for spec in gate_list.PREFLIGHT if spec.name in {*names, *beside})
    monkeypatch.setattr(gate_list, "PREFLIGHT", chosen)


@pytest.fixture
def only_gates(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`only_gates("weights")`: where a flow's order is the subject, a round has these gates, and `BESIDE`.

    Those pass without a look at anything. They stand in no cache: nobody else is to be shown a verdict that was given
    away.
    """

    def choose(*names: str) -> None:
        stand(monkeypatch, *names)

    return choose


@pytest.fixture(scope="session")
def green(built: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, State[Any]]:
    """A workspace after a green preflight, and the flow's state. Never write into it: take `green_copy`."""
    run = copied(built, tmp_path_factory.mktemp("green") / "workspace")
    return run, start(run)


@pytest.fixture
def green_copy(green: tuple[Run, State[Any]], tmp_path: Path) -> Run:
    """A workspace of the test's own after a green preflight, with its ticket."""
    run, _ = green
    return copied(run, tmp_path / "workspace")


@pytest.fixture(scope="session")
def done(opened: Run, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A training that nothing disturbed. Never write into it: take `copied`."""
    run = copied(opened, tmp_path_factory.mktemp("done") / "workspace")
    return Ended(run, start_training(run))
