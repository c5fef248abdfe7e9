"""A command that a launcher starts in two processes reports what one process reports."""

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
from tests.training.ranks.launches import TWO

from . import launched
from .conftest import settings

RunJson = Callable[..., dict[str, Any]]
ALONE = (launched.__name__,)
"""Two shards in one process."""
LAUNCHED = (*TWO, launched.__name__)
FAILED = 2
TIMES = {"time", "seconds"}


@pytest.fixture
def run_json(tmp_path: Path, built: Run, verdicts: Verdicts) -> RunJson:
    """Runs a command in one workspace with a ticket; returns its `--json` document."""
    root = tmp_path / "workspace"
    copy_with_base(built, root)
    run = ticketed(root, built, verdicts, "training.shards=2", "training.processes=1")
    given = ("--workspace", str(root), *settings(run.overrides), "--json")

    def run_command(how: tuple[str, ...], name: str, *arguments: str, code: int) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", *how, name, *arguments, *given],
            env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stderr[-3000:]
        body: dict[str, Any] = json.loads(done.stdout)
        return body

    return run_command


@pytest.mark.long
def test_launched_evaluation_equals_that_of_one_process(run_json: RunJson) -> None:
    run_json(ALONE, "train", code=FAILED)
    alone, shared = run_json(ALONE, "evaluate", code=0), run_json(LAUNCHED, "evaluate", code=0)
    assert without_times(alone) == without_times(shared)


def without_times(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in TIMES}
