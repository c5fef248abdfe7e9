"""What a failure leaves behind: an error report, and a package to hand on."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from rc1_lib.artifacts import now, write_text
from rc1_lib.cli.logbook import last_lines
from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.failpack import stamped, write_failpack
from rc1_lib.masking import mask, secrets

_LINES = 200


def write_error(session: Session, error: Exception, log: Path) -> Path:
    """Write `reports/ERROR_<time>.json`: the message, the trace and the last 200 lines of the log, without secrets."""
    import orjson

    path = stamped(session.workspace.path("reports"), "ERROR", ".json")
    trace = traceback.format_exception(error)
    body = {
        "time": now(),
        "message": str(error) or type(error).__name__,
        "kind": type(error).__name__,
        "trace": "".join(trace).splitlines(),
        "log": log.name,
        "last_lines": last_lines(log, _LINES),
    }
    write_text(path, mask(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode(), secrets()) + "\n")
    return path


def failure_package(session: Session) -> Path:
    """Write the failure package of what the session has worked on: its run, or only its workspace."""
    return write_failpack(session.run or session.workspace, _refused(session))


def failpack(session: Session) -> int:
    """Pack logs, reports and configurations into reports/rc1/FAIL_<time>.tgz, without secrets and without data."""
    try:
        session.open()
    except RC1Error as error:
        # A configuration that is refused is a reason to pack, not a reason not to.
        print(f"rc1: packing without a run: {error}", file=sys.stderr)
    path = failure_package(session)
    session.show(str(path))
    session.document({"exit_code": 0, "failpack": str(path)})
    return 0


def _refused(session: Session) -> list[Path]:
    return [session.options.config] if session.options.config else []
