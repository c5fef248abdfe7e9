"""`init` (a folder with all that a run reads), `doctor` (what a training would fail on), `failpack` (for a helper)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from rc1_lib.cli.endings import Ending, Failure, again, end, then
from rc1_lib.cli.options import Seed
from rc1_lib.cli.session import Session
from rc1_lib.cli.tables import table
from rc1_lib.errors import RC1Error
from rc1_lib.runtime.libraries import quieten

if TYPE_CHECKING:
    from rc1_lib.doctor.finding import Finding

_RED = 1


def init(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder, made where it is missing.")],
) -> int:
    """Lay configurations, judge instructions, templates and the embedded base into a folder; overwrite nothing.

    Every command then works in that folder, or with it as --workspace.
    """
    from rc1_lib.workspace.folder import lay_out

    root = folder.resolve()
    parts = lay_out(root)
    session.show(*(f"{what}: {len(part)} files" for what, part in parts.items()))
    session.options = replace(session.options, workspace=folder)
    files = [name for part in parts.values() for name in part]
    ending = Ending("done", f"{len(files)} files in {root}", following=then(session, "preflight"))
    return end(session, ending, {"folder": str(root), "files": files})


def doctor(session: Session, seed: Seed = None) -> int:
    """Check the machine before a training: ticket, base model, keys, servers, disk, memory. Writes nothing.

    Give the flags of the training. Exits 0 when all is well, 1 when a check failed.
    """
    from rc1_lib.doctor.looks import examined

    run = session.open({"pool.seed": seed})
    quieten(hub=False)
    found = examined(run)
    code = _RED if any(one.red for one in found.values()) else 0
    rows = [
        (name, Text(*(("FAILED", "bold red") if one.red else ("ok", "green"))),
         f"{one.found}\n-> {one.advice}" if one.red else one.found)
        for name, one in found.items()
    ]  # fmt: skip
    session.show(table("before a training", ("check", "", "what was found, and what to do"), rows))
    looks = {name: {"red": one.red, **asdict(one)} for name, one in found.items()}
    return end(session, _ending(session, found), {"exit_code": code, "looks": looks}, code)


def _ending(session: Session, found: Mapping[str, Finding]) -> Ending:
    failures = [Failure(f"{name}: {one.found}", one.advice) for name, one in found.items() if one.red]
    if failures:
        names = ", ".join(name for name, one in found.items() if one.red)
        words = f"{len(failures)} of {len(found)} checks: {names}"
        return Ending("fail", words, failures, following=again(session, "doctor"))
    return Ending("pass", f"{len(found)} checks, ready to train", following=then(session, "train"))


def failpack(session: Session) -> int:
    """Pack logs, reports and configurations into reports/rc1/FAIL_<time>.tgz, without secrets and without data."""
    try:
        session.open()
    except RC1Error as error:
        # A configuration that is refused is a reason to pack, not a reason not to.
        print(f"rc1: packing without a run: {error}", file=sys.stderr)
    path = session.pack_failure()
    session.show(str(path))
    words = "packed, without secrets and without data: hand it to whoever is to help"
    return end(session, Ending("done", words), {"exit_code": 0, "failpack": str(path)})
