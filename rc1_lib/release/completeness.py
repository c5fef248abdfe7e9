"""How much of what a training should leave is there: checkpoints, lines of metrics, checksums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.evaluation.derived import TRAINING_REPORT
from rc1_lib.evaluation.tables import Rows
from rc1_lib.plots.training import read_metrics
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.ticket import TICKET
from rc1_lib.run import EFFECTIVE, Run
from rc1_lib.training.checkpoint.ledger import read_ledger
from rc1_lib.training.checkpoint.manifest import step_of
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.vouched import DATA
from rc1_lib.workspace.artifacts import has_checksum


def completeness(run: Run, training: Mapping[str, Any]) -> Rows:
    """Return a table of what there is, of what is expected.

    Args:
        run: the workspace and its configuration.
        training: the training's report.
    """
    counts = {"checkpoints": _checkpoints(run), "steps in the metrics": (0, 0), "checksums": _checksums(run, training)}
    for one in training["runs"]:
        metrics = run.workspace.path(paths_of(run, int(one["seed"])).metrics)
        steps = step_of(run.workspace.path(str(one["checkpoint"]))) or 0
        logged = read_metrics(metrics)["step"].n_unique() if metrics.is_file() else 0
        there, wanted = counts["steps in the metrics"]
        counts["steps in the metrics"] = there + min(logged, steps), wanted + steps
    return Rows(
        "Completeness",
        ("what", "there", "expected", "share"),
        [(name, str(there), str(all_), f"{there / max(all_, 1):.0%}") for name, (there, all_) in counts.items()],
    )


def _checkpoints(run: Run) -> tuple[int, int]:
    """Return how many checkpoints of the ledger exist, and how many were not removed by rule."""
    kept = dict[str, bool]()
    for entry in read_ledger(run.workspace.path(LEDGER)):
        kept[str(entry.get("path"))] = "removed" not in entry
    expected = [run.workspace.path(name) for name, stays in kept.items() if stays]
    return sum(path.is_dir() for path in expected), len(expected)


def _checksums(run: Run, training: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many key files have the checksum of their bytes in `reports/rc1`, and how many key files exist."""
    data = [one.where(run) for one in (*DATA, WEIGHTS) if one.applies(run)]
    evaluated = filter(None, [training.get("evaluation")])  # none with --no-evaluate
    names = [*data, EFFECTIVE, *PASSED.values(), TICKET, TRAINING_REPORT, *map(str, evaluated)]
    there = {name for name in names if run.workspace.path(name).is_file()}
    return sum(has_checksum(run.workspace, name) for name in there), len(there)
