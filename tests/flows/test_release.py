"""The release as a flow: what it leaves, and what it refuses."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect import State
from prefect.artifacts import Artifact

from flows.release import release
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.release.verifier import verify
from rc1_lib.run import Run, open_run
from rc1_lib.workspace_lock import holding
from tests.evaluation.tables import PPO
from tests.once import copy_of
from tests.trained import evaluated, trained


@pytest.fixture
def own(opened: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace of the test's own, trained and evaluated green."""
    made = copy_of("releasable", lambda root: evaluated(trained(opened, root)), tmp_path_factory)
    root = tmp_path / "workspace"
    shutil.copytree(made, root, symlinks=True)
    return open_run(profile="local", workspace=root, overrides=opened.overrides)


def start(run: Run, **parameters: Any) -> State[Any]:
    chosen = {"overrides": list(run.overrides), "workspace": str(run.workspace.root)}
    state: State[Any] = release(**{**chosen, **parameters}, return_state=True)
    return state


def test_a_green_run_is_reported_packed_and_shown(own: Run) -> None:
    state = start(own)
    assert (state.is_completed(), state.name) == (True, "Released"), state.message
    path = str(state.message).partition(",")[0]
    assert verify(own.workspace.path(path)).problems == []
    link, card = Artifact.get("rc1-report"), Artifact.get("rc1-release")
    assert link is not None
    assert card is not None
    assert "RC1 report, GREEN" in str(link.description)
    assert own.workspace.path("reports/release/report.html").as_uri() in str(link.data)
    assert path in str(card.data)


def test_a_red_run_is_reported_as_red_and_not_released(own: Run) -> None:
    evaluated(own, replace(PPO, asks_needed=0.0, asks_clear=0.0))
    told = start(own, only_report=True)
    assert (told.is_completed(), told.name) == (True, "ReportWritten")
    assert "RED: the gate ppo_eval is red" in str(told.message)
    state = start(own)
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert "no release: the gate ppo_eval is red" in str(state.message)
    assert "RED</span>" in own.workspace.path("reports/release/report.html").read_text(encoding="utf-8")
    assert not list(own.workspace.path("reports/release").glob("*.tar"))


def test_without_a_ticket_that_holds_nothing_is_released(own: Run) -> None:
    revoke_ticket(own, "a test")
    state = start(own)
    assert (state.name, "it was revoked" in str(state.message)) == ("Refused", True)
    assert not list(own.workspace.path("reports/release").glob("*.tar"))


def test_nothing_is_released_while_a_training_is_at_work(own: Run) -> None:
    with holding(own.workspace, "a training"):
        state = start(own)
    assert (state.name, "a training (process" in str(state.message)) == ("Refused", True)
