"""The judge grades the baseline's dialogues as it did before the calibration (`rc1_lib.calibration`)."""

from __future__ import annotations

from rc1_lib.calibration.derived import JUDGE_BASELINE
from rc1_lib.calibration.judge_baseline import drift_verdict
from rc1_lib.gates.spec import NIGHTLY, GateSpec

SPEC = GateSpec(
    "judge_drift", "does the judge grade as it did", (JUDGE_BASELINE.name, "judge_spec"),
    lambda e, _: drift_verdict(e.run), rounds=(NIGHTLY,), reads_world=True, asks=True, on_score=True,
)  # fmt: skip
