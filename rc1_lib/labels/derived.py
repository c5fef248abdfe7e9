"""The input of this room: people's labels."""

from __future__ import annotations

from rc1_lib.provenance.derived import Given
from rc1_lib.run import Run

GATE = "judge_agreement"


def _enforced(run: Run) -> bool:
    return run.config.pays_judged_score and GATE not in run.config.gates.waivers


LABELS = Given(
    "labels",
    # Only below the workspace: labels from another run do not belong to this one's judge.
    lambda run: str(run.workspace.path(run.config.judge.labels.path)),
    wanted=_enforced,
    made_by="the judge is uncalibrated until people have labelled dialogues; `rc1 label` writes a sheet for them",
)
"""The label file that the gate `judge_agreement` reads and a ticket vouches for."""
