"""The report of a fault: message, trace and the last lines of the log, without secrets."""

from __future__ import annotations

import traceback
from pathlib import Path

from rc1_lib.artifacts import Workspace, now, write_json
from rc1_lib.failpack import stamped
from rc1_lib.masking import conceal_tree, secrets

_LINES = 200


def write_error(place: Workspace, error: BaseException, log: Path) -> Path:
    """Write `reports/ERROR_<time>.json` and return its path.

    Args:
        place: where.
        error: the fault.
        log: whose last 200 lines are told; none where it is not there.
    """
    path = stamped(place.path("reports"), "ERROR", ".json")
    body = {
        "time": now(),
        "message": str(error) or type(error).__name__,
        "kind": type(error).__name__,
        "trace": "".join(traceback.format_exception(error)).splitlines(),
        "log": log.name,
        "last_lines": _last_lines(log) if log.is_file() else [],
    }
    write_json(path, conceal_tree(body, secrets()))
    return path


def _last_lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]
