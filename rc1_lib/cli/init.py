"""`init`: a folder with all that a run reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rc1_lib.cli.endings import Ending, end, then
from rc1_lib.cli.session import Session


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
