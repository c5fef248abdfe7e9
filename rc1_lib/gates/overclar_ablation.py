"""The ablation that the calibration made of this reward and this penalty passed (`rc1_lib.calibration`)."""

from __future__ import annotations

from rc1_lib.calibration.overclar_ablation import ablation_verdict
from rc1_lib.gates.spec import GateSpec

SPEC = GateSpec(
    "overclar_ablation", "does the penalty do what it should", ("weights", "takes", "judge_spec"),
    lambda e, _: ablation_verdict(e.run), reads_world=True,
)  # fmt: skip
