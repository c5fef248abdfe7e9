"""Commands that a launcher starts twice are one command, which says what it says without a launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.conftest import Verdicts
from tests.ticketed import copy_with_base, ticketed
from tests.training.ranks.test_launched import TWO

from . import launched
from .conftest import settings

Told = Callable[..., dict[str, Any]]
ALONE = (launched.__name__,)
"""Two shards of one process."""
LAUNCHED = (*TWO, launched.__name__)
RED = 2
LAUNCHERS_OWN = 1
"""What torch's launcher ends with when a process of its own ended with anything but 0."""
WHEN = {"time", "seconds"}


@pytest.fixture
def told(tmp_path: Path, built: Run, verdicts: Verdicts) -> Told:
    """Runs a command in one workspace with a ticket; gives what it tells with `--json`."""
    root = tmp_path / "workspace"
    copy_with_base(built, root)
    run = ticketed(root, built, verdicts, "training.shards=2", "training.processes=1")
    given = ("--workspace", str(root), *settings(run.overrides), "--json")

    def tell(how: tuple[str, ...], name: str, *arguments: str, code: int) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", *how, name, *arguments, *given],
            env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stderr[-3000:]
        body: dict[str, Any] = json.loads(done.stdout)
        return body

    return tell


@pytest.mark.long
def test_a_launched_plan_is_one_plan_by_steps_that_both_processes_share(told: Told) -> None:
    body = told(LAUNCHED, "plan", "--pilot-steps", "2", code=0)
    assert body["parts"]["training"]["hours"]["value"] > 0
    assert (body["pilot"]["device"], body["pilot"]["gpus"]) == ("cpu", 0)


@pytest.mark.long
def test_launched_learnability_finds_what_one_process_finds(told: Told) -> None:
    alone, shared = told(ALONE, "learnability", code=RED), told(LAUNCHED, "learnability", code=LAUNCHERS_OWN)
    assert found(alone) == found(shared) and alone["gate"]["status"] == "failed"


@pytest.mark.long
def test_a_launched_evaluation_of_a_checkpoint_finds_what_one_process_finds(told: Told) -> None:
    told(ALONE, "train", code=RED)
    alone, shared = told(ALONE, "evaluate", code=0), told(LAUNCHED, "evaluate", code=0)
    assert found(alone) == found(shared)


def found(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in WHEN}
