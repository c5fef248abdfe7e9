"""`shadow-run`: in this version, the materialisation of the shadow set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rc1_lib.cli import tables
from rc1_lib.cli.options import Rebuild, Sources, overrides, source
from rc1_lib.cli.session import Session
from rc1_lib.cli.writing import to_write
from rc1_lib.errors import ConfigError


def shadow_run(
    session: Session,
    n: Annotated[int | None, typer.Option(help="Rows of the shadow set (shadow.n).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw (shadow.seed).")] = None,
    stratify: Annotated[
        bool | None, typer.Option("--stratify/--no-stratify", help="Draw in the shares of the mix (shadow.stratify).")
    ] = None,
    materialize: Annotated[
        Path | None, typer.Option(help="Write the shadow set to this file below the workspace.")
    ] = None,
    dump_manifest: Annotated[
        Path | None, typer.Option(help="Write which question stands in which row to this file.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Label of a comparison; not part of this version.")] = None,
    sources: Sources = None,
    rebuild: Rebuild = False,
) -> int:
    """Write the shadow set. Comparing the old score with the new reward on it is not part of this version."""
    if tag is not None or materialize is None:
        cause = "without --materialize" if materialize is None else f"--tag {tag}"
        raise ConfigError(
            f"shadow-run {cause}: comparing the old score with the new reward is not part of this version; "
            f"`rc1 shadow-run --materialize PATH` writes the shadow set"
        )
    copy = session.inside("--dump-manifest", dump_manifest)
    run = session.open(
        overrides(
            {
                "shadow.path": session.inside("--materialize", materialize),
                "shadow.n": n,
                "shadow.seed": seed,
                "shadow.stratify": stratify,
                "sources.use": source(sources),
            }
        )
    )
    from rc1_lib.artifacts import read_json, write_json
    from rc1_lib.pool.seed import SAMPLE_MANIFEST, build_seed, seed_state

    path = run.config.shadow.path
    with session.progress("writing the shadow set"):
        due = to_write(run, path, seed_state(run, "shadow"), rebuild)
        if due:
            build_seed(run, ("shadow",))
    sample = read_json(run.workspace.path(SAMPLE_MANIFEST))
    if copy and copy != SAMPLE_MANIFEST:
        write_json(run.workspace.path(copy), sample)
    done = "written" if due else "unchanged"
    session.show(f"{sample['n']} rows, {tables.counts(sample['strata'])}, {run.workspace.path(path)}, {done}")
    session.show(f"    sha256 {sample['sha256']}", f"manifest: {run.workspace.path(copy or SAMPLE_MANIFEST)}")
    session.document({**sample, "written_now": due})
    return 0
