"""`world export` and `world verify`: the dialogue world for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rc1_lib.cli.ending import Ending, Failure, show_ending
from rc1_lib.cli.following import then
from rc1_lib.cli.session import Session
from rc1_lib.errors import ConfigError, RC1Error

if TYPE_CHECKING:
    from rc1_lib.run import Run

DEFAULT = "outputs/rc1_world"
_SHOWN = 40


def export(
    session: Session,
    rows: Annotated[
        Path | None, typer.Option(help="JSONL of measured rows to play. Default: the balanced pool of training.")
    ] = None,
    part: Annotated[
        str, typer.Option(help="Which of them: the questions of training or of the evaluation alone, or all.")
    ] = "training",
    to: Annotated[
        Path | None, typer.Option(help=f"A folder of the workspace that is not there yet. Default: {DEFAULT}.")
    ] = None,
) -> int:
    """Write the environment for OpenEnv, which verifiers plays too (extras `openenv`, `verifiers`).

    Manifest, rows and server are the same bytes from the same inputs. Limits and prices are the configuration's; the
    judge's share is left out of the reward, since nobody is asked there.
    """
    run = session.open()
    from rc1_lib.worlds.package import export_world
    from rc1_lib.worlds.spec import Part

    if part not in [*Part]:
        raise ConfigError(f"--part: found '{part}', expected one of {', '.join(Part)}")
    target = session.new_folder("--to", to, DEFAULT)
    document = export_world(run, _pool(session, run, rows), target, Part(part))
    own = document["rc1"]
    left_out = run.config.training.reward.judge
    session.show(
        f"exported: {target}",
        *([f"the judge's share, {left_out:g} of the reward, is left out: nobody is asked there"] if left_out else []),
    )
    words = f"environment of {own['rows']['count']:,} rows of {own['pool']['path']}"
    show_ending(session, Ending("done", words, following=then(session, "world verify", str(target))))
    session.document({"folder": str(target), "manifest": document})
    return 0


def verify(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="A folder that `rc1 world export` wrote.")],
    rows: Annotated[
        Path | None, typer.Option(help="The pool it is of. Default: the one that its manifest names.")
    ] = None,
) -> int:
    """Check that an exported environment is the one on this disk: rows, templates, limits, reward.

    Give the flags of its export. Exit code 2 where something differs, by name.
    """
    run = session.open()
    from rc1_lib.worlds.check import differences, named_pool

    at = run.workspace.path(session.given(folder))
    found = differences(run, at, _pool(session, run, rows) if rows else named_pool(run, at))
    session.show(*map(str, found[:_SHOWN]))
    if len(found) > _SHOWN:
        session.show(f"and {len(found) - _SHOWN} more; --json lists all")
    words = f"{at.name}: {f'{len(found)} differences from' if found else 'is'} the environment on this disk"
    failures = [Failure(str(one), "export it again, or put back what changed") for one in found]
    show_ending(session, Ending("fail" if found else "pass", words, failures))
    listed = [{"where": one.where, "found": one.found, "here": one.here} for one in found]
    session.document({"same": not found, "differences": listed})
    return 2 if found else 0


def _pool(session: Session, run: Run, rows: Path | None) -> Path:
    pool = run.workspace.path(session.given(rows) or run.config.seed_pool)
    if not pool.is_file():
        raise RC1Error(f"{pool}: there is no such file, expected rows that rc1 difficulty-bucketize wrote")
    return pool
