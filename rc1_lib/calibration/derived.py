"""Derived files of this room that a ticket pins: the weights, and the judge's baseline.

The reports of attack and ablation are described where their keys are computed.
"""

from __future__ import annotations

from typing import Any

from rc1_lib.config.judge import BASELINE_PATH
from rc1_lib.errors import RC1Error
from rc1_lib.judge.prompt import judge_identity, scoring_settings
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import Artifact, Input, file_input
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState, file_state, read_json, sha256_json

REFUSED = "reports/rc1/weights.refused.json"
"""The inputs of the newest calibration that failed."""
Body = dict[str, Any]


def _settings(run: Run) -> dict[str, Any]:
    config = run.config
    return {
        "reward": config.reward.model_dump(mode="json"),
        "calibration": config.calibration.model_dump(mode="json"),
        "overclar": config.overclar.model_dump(mode="json"),
        "gates": config.gates.model_dump(mode="json", include={"calibration", "weights"}),
    }


def _failed_since(run: Run) -> bool:
    """Whether a later calibration with the same inputs failed."""
    try:
        return bool(read_json(run.workspace.path(REFUSED)) == all_decisive(run))
    except (OSError, ValueError):
        return False


WEIGHTS = Artifact(
    "weights", lambda run: run.config.weights, _settings, "rc1_lib.calibration.weight_calib.weight_calib",
    "rc1 calibrate",
    (
        file_input("balanced", lambda run: run.config.difficulty.balanced_path),
        Input("judge", lambda run: sha256_json(scoring_settings(run))),
    ),
    outdated=_failed_since, vouched=True, wanted=lambda run: run.config.pays_judged_score,
)  # fmt: skip


def all_decisive(run: Run) -> dict[str, str]:
    """Return the inputs of the weights, and hashes of the later stages' thresholds and code."""
    later = run.config.gates.model_dump(mode="json", include={"shared", "ablation", "reward_hacking", "shadow_run"})
    return {
        **WEIGHTS.inputs(run),
        "behind": sha256_json(later),
        "code_behind": code_sha256("data"),
    }


def _look(run: Run) -> FileState:
    """Return the state of the file; stale if the judge is a different one now."""
    where = BASELINE_PATH
    state = file_state(run.workspace, where, None, JUDGE_BASELINE.name)
    if state not in (FileState.FRESH, FileState.STALE):
        return state
    # Without other inputs it is stale only if a kill left it without its checksum: the bytes match the manifest.
    try:
        return FileState.FRESH if read_baseline(run)["judge"] == judge_identity(run) else FileState.STALE
    except RC1Error:
        return FileState.ALTERED


JUDGE_BASELINE = Artifact(
    "judge_baseline", lambda _: BASELINE_PATH, None, "rc1_lib.calibration.judge_baseline.record_baseline",
    "rc1 preflight", look=_look, vouched=True, wanted=lambda run: run.config.pays_judged_score,
)  # fmt: skip


def read_baseline(run: Run) -> Body:
    """Read the baseline; raises `RC1Error` if it cannot be read or is not a baseline."""
    path = JUDGE_BASELINE.path(run)
    try:
        body = read_json(path)
    except (OSError, ValueError) as error:
        raise RC1Error(f"{path}: cannot read this baseline ({error}); {another(run)}") from None
    if not isinstance(body, dict) or not {"judge", "dialogues", "dimensions", "recorded"} <= body.keys():
        raise RC1Error(f"{path}: is not a baseline of a judge; {another(run)}")
    return body


def another(run: Run) -> str:
    """Return what to do for another baseline."""
    checksum = run.workspace.checksum_path(BASELINE_PATH)
    return f"for a new baseline, move it and {checksum} away and run `rc1 preflight`"
