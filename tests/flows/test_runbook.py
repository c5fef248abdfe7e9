"""The runbook of a running training names only figures that a training writes."""

from __future__ import annotations

import re

from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.run_paths import paths_of
from rc1_lib.workspace.artifacts import PROJECT_ROOT

from .trainings import Ended

PAGE = PROJECT_ROOT / "docs/how-to/runbook.md"
JUDGED = {"judge/score", "judge/scored", "judge/unstable"}
"""Figures of a training with a judged reward, which the tests' short training lacks."""


def test_training_writes_every_figure_that_the_runbook_names(done: Ended) -> None:
    figures, stop, _ = PAGE.read_text("utf-8").partition("## Stop, or let it run")
    assert stop
    first_cells = [line.split("|")[1] for line in figures.splitlines() if line.startswith("| `")]
    named = {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    run = done.run
    written = set(MetricsLog(run.workspace.path(paths_of(run, run.config.seeds[0]).metrics)).read()[-1])
    assert len(named) > 15
    assert named - written <= JUDGED
