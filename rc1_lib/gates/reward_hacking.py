"""The adversarial policies that the calibration played against this reward earned less than the scripted expert."""

from __future__ import annotations

from rc1_lib.calibration.reward_hacking import hacking_verdict
from rc1_lib.gates.spec import GateSpec

SPEC = GateSpec(
    "reward_hacking", "does the reward pay adversarial policies less", ("weights", "shadow", "takes", "judge_spec"),
    lambda e, _: hacking_verdict(e.run), reads_world=True,
)  # fmt: skip
