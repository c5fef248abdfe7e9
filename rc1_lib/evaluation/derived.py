"""The artifact of an evaluation: its report, named by a hash of everything that decides it."""

from __future__ import annotations

import re
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.provenance.derived import Artifact
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json

KIND = "ppo_eval"
TRAINING_REPORT = "reports/train.json"
_NAME = re.compile(rf"reports/{KIND}_\w+\.json", re.ASCII)
"""The names of reports that RC1 writes; no other file is read as one."""


def _settings(run: Run) -> dict[str, Any]:
    return run.config.gates.model_dump(mode="json", include={"shared", "evaluation"})


def _latest(run: Run) -> str:
    """Return the path of the evaluation with which the latest training ended."""
    path = run.workspace.path(TRAINING_REPORT)
    try:
        named = read_json(path)["evaluation"]
    except (OSError, ValueError, KeyError, TypeError):
        named = None
    if not isinstance(named, str) or not _NAME.fullmatch(named):
        raise RC1Error(f"{path}: does not name an evaluation; run `rc1 train`, which ends with one")
    return named


EVALUATION = Artifact(
    KIND, _latest, _settings, "rc1_lib.evaluation.policies.evaluate_run", "rc1 train", code="ticket",
)  # fmt: skip
