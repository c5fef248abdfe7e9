"""What scoring is given: the judge's instructions."""

from __future__ import annotations

from rc1_lib.provenance.derived import Given
from rc1_lib.scoring.prompt import FOLDER

JUDGE_SPEC = Given(
    "judge_spec",
    lambda run: f"{FOLDER}/{run.config.judge.spec}.yaml",
    wanted=lambda run: run.config.pays_judged_score,
)
