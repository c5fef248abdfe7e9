"""`doctor`: what a training would stumble over, before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rc1_lib.cli.ending import Ending, Failure, show_ending
from rc1_lib.cli.following import again, then
from rc1_lib.cli.options import Seed, overrides
from rc1_lib.cli.quiet import quieten
from rc1_lib.cli.session import Session

if TYPE_CHECKING:
    from rc1_lib.doctor.finding import Finding

_RED = 1


def doctor(session: Session, seed: Seed = None) -> int:
    """Check the machine before a training: ticket, base model, keys, servers, disk, memory. Writes nothing.

    Give the flags of the training. Exits 0 when all is well, 1 when a check failed.
    """
    from rc1_lib.doctor.looks import examined

    run = session.open(overrides({"pool.seed": seed}))
    quieten(hub=False)
    found = examined(run)
    code = _RED if any(one.red for one in found.values()) else 0
    session.show(_table(found))
    show_ending(session, _ending(session, found))
    looks = {name: {"red": one.red, **asdict(one)} for name, one in found.items()}
    session.document({"exit_code": code, "looks": looks})
    return code


def _ending(session: Session, found: Mapping[str, Finding]) -> Ending:
    failures = [Failure(f"{name}: {one.found}", one.advice) for name, one in found.items() if one.red]
    if failures:
        names = ", ".join(name for name, one in found.items() if one.red)
        words = f"{len(failures)} of {len(found)} checks: {names}"
        return Ending("fail", words, failures, following=again(session, "doctor"))
    return Ending("pass", f"{len(found)} checks, ready to train", following=then(session, "train"))


def _table(found: Mapping[str, Finding]) -> Table:
    table = Table(title="before a training", title_justify="left", expand=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was found, and what to do", overflow="fold")
    for name, one in found.items():
        words = f"{one.found}\n-> {one.advice}" if one.red else one.found
        table.add_row(Text(name), Text("FAILED", "bold red") if one.red else Text("ok", "green"), Text(words))
    return table
