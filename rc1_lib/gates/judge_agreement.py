"""The judge agrees with people on the dialogues that they labelled (`rc1_lib.calibration`)."""

from __future__ import annotations

from rc1_lib.calibration.judge_agreement import judge_agreement
from rc1_lib.gates.spec import GateSpec
from rc1_lib.labels.label_file import read_labels

SPEC = GateSpec(
    "judge_agreement", "does the judge agree with people", ("labels", "judge_spec"),
    lambda e, _: judge_agreement(e.run, read_labels(e.path("labels"))).gate, reads_world=True, asks=True,
    on_score=True,
)  # fmt: skip
