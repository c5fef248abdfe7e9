"""What a failure leaves behind: an error report, and a package to hand on."""

from __future__ import annotations

import sys
from pathlib import Path

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.failpack import write_failpack


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
    show_ending(session, Ending("done", "packed, without secrets and without data: hand it to whoever is to help"))
    session.document({"exit_code": 0, "failpack": str(path)})
    return 0


def _refused(session: Session) -> list[Path]:
    return [session.options.config] if session.options.config else []
