"""The shadow run, made again in round 2: the calibrated reward predicts success better (`rc1_lib.calibration`)."""

from __future__ import annotations

from rc1_lib.calibration.shadow_run import PRE_RUN, shadow_run
from rc1_lib.gates.spec import GateSpec

SPEC = GateSpec(
    "shadow_run", "does the new reward order dialogues better", ("shadow", "weights", "judge_spec"),
    lambda e, _: shadow_run(e.run, PRE_RUN).gate, rounds=(2,), reads_world=True, asks=True, on_score=True,
)  # fmt: skip
