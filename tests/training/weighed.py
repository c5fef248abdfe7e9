"""Adopts weights for a test's workspace in the way of a passed calibration."""

from __future__ import annotations

from collections.abc import Sequence

from rc1_lib.calibration.weights_file import adopt
from rc1_lib.judge import rubric
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import write_json

WEIGHTS = {"answered": 0.3, "grounded": 0.25, "restrained": 0.2, "obtained": 0.15, "reply_used": 0.1}
REPORT = "reports/calibration_report_test.json"


def weigh(run: Run, weights: dict[str, float] | None = None, models: Sequence[str] | None = None) -> Run:
    """Adopt weights that were calibrated on scores of these judge versions; default: the rubric's."""
    used = WEIGHTS if weights is None else weights
    on = [rubric.version()] if models is None else list(models)
    write_json(run.workspace.path(REPORT), {"weights": used, "pass": True, "scoring": {"models": on}})
    adopt(run, used, REPORT)
    return run
