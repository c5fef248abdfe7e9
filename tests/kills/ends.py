"""The contents of a workspace after preflight and training, without times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rc1_lib.calibration.weights_file import WEIGHTS
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import DATA
from rc1_lib.preflight.round_report import PASSED
from rc1_lib.preflight.ticket import TICKET, verify_ticket
from rc1_lib.run import Run
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.run_paths import CHECKPOINTS, METRICS
from rc1_lib.workspace.artifacts import FileState, read_json
from rc1_lib.workspace.file_hashes import sha256_file

_MACHINE_CHECKS = re.compile(r"latency|free|commit|changed files")
"""Checks whose value is a time, the disk, or the repository."""
_DATED = ("weights", "judge_baseline")
"""Files with a date, or that name a file with one."""
_TIMED = ("sec_per_step", "mem_used_mb")
End = dict[str, Any]
"""Name -> hash or value."""


def data(run: Run) -> dict[str, str]:
    """The data files that match their manifests."""
    return {one.name: sha256_file(one.path(run)) for one in DATA if one.state(run) is FileState.FRESH}


def ending(run: Run) -> End:
    """All results of a workspace: hashes of files, verdicts and figures, without times."""
    ticket = read_json(run.workspace.path(TICKET))
    (evaluation,) = run.workspace.path("reports").glob("ppo_eval_*.json")
    tables = sorted(run.workspace.path("reports").glob("shadow_run_*.rows.jsonl"))
    checkpoints = sorted(run.workspace.path(CHECKPOINTS).glob("**/step_*"))
    training = _report(run, "train.json")
    return {
        **{f"file: {name}": sha256 for name, sha256 in data(run).items()},
        **{f"file: {path.name}": sha256_file(path) for path in tables},
        **{f"weights: {name}": weight for name, weight in read_json(WEIGHTS.path(run))["weights"].items()},
        **_check_values("calibration", [stage["gate"] for stage in _report(run, "calibration_stages.json")["stages"]]),
        **{key: value for number in PASSED for key, value in _round(run, number).items()},
        **{f"ticket: {name}": one["sha256"] for name, one in ticket["files"].items() if name not in _DATED},
        **{f"checkpoint: {path.parent.name}/{path.name}": fingerprint(path) for path in checkpoints},
        **{f"step {line['step']}": _timeless(line) for line in MetricsLog(run.workspace.path(METRICS)).read()},
        **{f"evaluation: {key}": read_json(evaluation)[key] for key in ("key", "modes", "episodes")},
        **{f"training: {key}": training[key] for key in ("reference", "pass", "message", "best")},
    }


def holds(run: Run) -> bool:
    """Whether the ticket is valid."""
    try:
        verify_ticket(run)
    except RC1Error:
        return False
    return True


def foreign(run: Run) -> list[str]:
    """Files of RC1 that it would treat as foreign or altered."""
    wrong = (FileState.FOREIGN, FileState.ALTERED)
    return [one.name for one in (*DATA, WEIGHTS) if one.state(run) in wrong]


def _report(run: Run, name: str) -> Any:
    return read_json(run.workspace.path(f"reports/{name}"))


def _round(run: Run, number: int) -> End:
    return _check_values(f"round {number}", read_json(run.workspace.path(PASSED[number]))["gates"])


def _check_values(where: str, gates: Iterable[Mapping[str, Any]]) -> End:
    """Every check value that does not depend on the machine."""
    return {
        f"{where}: {gate['name']}: {check['name']}": check["value"]
        for gate in gates
        for check in gate["checks"]
        if not _MACHINE_CHECKS.search(check["name"])
    }


def _timeless(line: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in _TIMED}
